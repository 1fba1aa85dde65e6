"use strict";
/* Small helpers: elements (texts are always set as text, never as HTML) and numbers in words. */

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);

function replace(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function shortened(text, most) {
  const letters = Array.from(text);
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

function figure(value) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size > 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

function probability(value) {
  if (!known(value)) return "–";
  return value < 1e-16 ? "< 1e-16" : value < 1e-3 ? value.toExponential(0) : value.toFixed(3);
}

function percent(value) {
  if (!known(value)) return "–";
  const size = 100 * value;
  return `${Math.abs(size) < 10 ? size.toFixed(1) : Math.round(size)}\u00a0%`;
}

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const delay = (lag) => (lag === 0 ? "within the slot" : `after ${plural(lag, "slot")}`);

function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
