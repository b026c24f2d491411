// The theme: light, dark, or that of the system. The choice is stored if the browser allows it.

const KEY = "shoal-theme";
const THEMES = ["system", "light", "dark"];

function load() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system"; // storage is forbidden
  }
}

function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Storage is forbidden: the choice is kept until the page is closed.
  }
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Connects radio buttons whose values are themes. */
export function connectTheme(fieldset) {
  const inputs = fieldset.querySelectorAll("input");
  for (const input of inputs) input.checked = input.value === load();
  fieldset.addEventListener("change", ({ target }) => {
    apply(target.value);
    store(target.value);
  });
}

// Runs before the first paint, so that a dark page does not flash.
apply(load());
