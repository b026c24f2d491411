// Creates and fills elements. Text from the server is inserted only with these, as plain text.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Creates an element; `text` sets its text, other attributes are named as in HTML. */
export function create(tag, { text, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

/** Creates an SVG element. */
export function createSvg(tag, attributes = {}, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Sets the text of an element if it differs. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
