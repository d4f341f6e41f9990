// Elements are made of data only: what is given as a child becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (name, properties, ...children) =>
  fill(document.createElement(name), properties, children);

export const s = (name, properties, ...children) =>
  fill(document.createElementNS(SVG, name), properties, children);

export const byId = (id) => document.getElementById(id);

export function table(head, rows, properties) {
  return h("div", { class: "scroll" }, h("table", properties,
    h("thead", null, h("tr", null, head.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", null, rows)));
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed by the browser";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}
