// Light, dark, or as the system has it; the choice is remembered where the browser lets us.

const KEY = "shoal-theme";
const THEMES = ["system", "light", "dark"];

function remembered() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system"; // storage is forbidden here
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Storage is forbidden here: the choice holds as long as the page.
  }
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Lets radio buttons, whose values are themes, choose. */
export function connectTheme(fieldset) {
  const inputs = fieldset.querySelectorAll("input");
  for (const input of inputs) input.checked = input.value === remembered();
  fieldset.addEventListener("change", ({ target }) => {
    apply(target.value);
    remember(target.value);
  });
}

// Before anything is painted, so that a dark page does not flash.
apply(remembered());
