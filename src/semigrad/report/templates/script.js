"use strict";
const root = document.documentElement;
const tip = document.getElementById("tip");

function showTip(event, words) {
  tip.textContent = words;
  tip.style.display = "block";
  const x = event.clientX + 14, y = event.clientY + 14;
  tip.style.left = Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(y, innerHeight - tip.offsetHeight - 8)) + "px";
}
function hideTip() {
  tip.style.display = "none";
  for (const line of document.querySelectorAll(".cursor")) line.remove();
}

// the value of every visible line at the step that the pointer is nearest to
function readAt(area, event) {
  const svg = area.ownerSVGElement;
  const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(area.getScreenCTM().inverse()).x;
  const nearest = (points) => points.reduce((a, b) => (Math.abs(b[0] - place) < Math.abs(a[0] - place) ? b : a));
  const [x, words] = nearest(area.points ||= JSON.parse(area.dataset.x));
  const lines = [`${area.dataset.label} ${words}`];
  for (const series of svg.querySelectorAll("g[data-values]:not(.hidden)")) {
    const points = (series.points ||= JSON.parse(series.dataset.values));
    if (!points.length) continue;
    const [at, value] = nearest(points);
    if (Math.abs(at - x) < 6) lines.push(`${series.dataset.name}: ${value}`);
  }
  hideTip();
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const box = area.getBBox();
  for (const [name, value] of Object.entries({x1: x, x2: x, y1: box.y, y2: box.y + box.height, class: "cursor"}))
    line.setAttribute(name, value);
  area.before(line);
  showTip(event, lines.join("\n"));
}
function explain(event) {
  const at = event.target.closest ? event.target.closest("[data-tip], .hover") : null;
  if (!at) hideTip();
  else if (at.dataset.tip) showTip(event, at.dataset.tip);
  else if (at.dataset.x !== "[]") readAt(at, event);
}
document.addEventListener("pointermove", explain);
document.addEventListener("pointerdown", explain);  // a finger does not move
document.addEventListener("pointerleave", hideTip);
document.addEventListener("scroll", hideTip, {passive: true});

function toggle(key) {
  const svg = key.ownerSVGElement;
  key.setAttribute("aria-pressed", key.getAttribute("aria-pressed") === "true" ? "false" : "true");
  const off = new Set([...svg.querySelectorAll('.key[aria-pressed="false"]')].map((each) => each.dataset.key));
  for (const each of svg.querySelectorAll("[data-keys]"))
    if (!each.closest(".key")) each.classList.toggle("hidden", each.dataset.keys.split(" ").some((k) => off.has(k)));
}
function sortBy(button) {
  const head = button.closest("th"), table = button.closest("table"), body = table.tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending", column = head.cellIndex;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.cells[column].dataset.value;
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined && y === undefined)
      return a.cells[column].textContent.localeCompare(b.cells[column].textContent) * (down ? -1 : 1);
    if (x === undefined || y === undefined) return x === undefined ? 1 : -1;
    return (x - y) * (down ? -1 : 1);
  });
  body.append(...rows);
}

function download(name, ending, address) {
  const link = document.createElement("a");
  link.download = name.replace(/[^\p{L}\p{N}@.-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "") + ending;
  link.href = address;
  link.click();
}
// the drawing with its present colors written into it and nothing that only a page needs, so that it looks the same
// elsewhere
function standAlone(svg) {
  const copy = svg.cloneNode(true);
  const here = [svg, ...svg.querySelectorAll("*")], there = [copy, ...copy.querySelectorAll("*")];
  const wanted = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "stroke-dasharray", "font-size",
    "font-weight", "font-family", "paint-order", "display"];
  here.forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const name of wanted) if (style.getPropertyValue(name)) there[place].setAttribute(name, style.getPropertyValue(name));
    for (const name of there[place].getAttributeNames())
      if (/^(data-|aria-|role$|tabindex$|class$)/.test(name)) there[place].removeAttribute(name);
  });
  here.forEach((element, place) => element.matches(".hover, .hit, .hidden, .cursor") && there[place].remove());
  const box = svg.viewBox.baseVal, ground = document.createElementNS(svg.namespaceURI, "rect");
  ground.setAttribute("width", box.width);
  ground.setAttribute("height", box.height);
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  copy.setAttribute("width", 2 * box.width);
  copy.setAttribute("height", 2 * box.height);
  return "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
}
function savePicture(button) {
  const figure = button.closest("figure"), svg = figure.querySelector("svg"), address = standAlone(svg);
  if (button.dataset.save === "svg") return download(figure.dataset.name, ".svg", address);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.getContext("2d").drawImage(image, 0, 0);
    download(figure.dataset.name, ".png", canvas.toDataURL("image/png"));
  };
  image.src = address;
}
function saveTable(button) {
  const tabled = button.closest(".tabled"), table = tabled.querySelector("table");
  const quoted = (cell) => '"' + cell.textContent.trim().replaceAll('"', '""') + '"';
  const text = [...table.rows].map((row) => [...row.cells].map(quoted).join(",")).join("\r\n");
  download(tabled.dataset.name, ".csv", "data:text/csv;charset=utf-8," + encodeURIComponent(text));
}
// the sheet of `semigrad label-next` with what was answered on its page
let unsaved = false;
function agree(card) {
  card.querySelector("input").value = card.dataset.proposed;
  unsaved = true;
}
function saveAnswers() {
  const quoted = (text) => '"' + text.trim().replaceAll('"', '""') + '"';
  const lines = [...document.querySelectorAll("[data-example]")].map((card) =>
    [card.dataset.example, card.dataset.proposed, card.dataset.confidence, card.dataset.reason,
      card.querySelector("input").value].map(quoted).join(","));
  const text = ["example,proposed,confidence,reason,answer", ...lines].join("\r\n") + "\r\n";
  download("answers", ".csv", "data:text/csv;charset=utf-8," + encodeURIComponent(text));
  unsaved = false;
}
document.addEventListener("input", (event) => { unsaved ||= Boolean(event.target.closest("[data-example]")); });
addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });  // the browser asks first

function setTheme(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
}
function storedTheme(value) {
  try {
    if (value) localStorage.setItem("semigrad-theme", value);
    return localStorage.getItem("semigrad-theme");
  } catch {
    return value;  // a page from disk may have no storage
  }
}
function switchTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(storedTheme(dark ? "light" : "dark") || (dark ? "light" : "dark"));
}
setTheme(storedTheme());

document.addEventListener("click", (event) => {
  const at = (what) => event.target.closest(what);
  if (at(".key")) toggle(at(".key"));
  else if (at("th button")) sortBy(at("th button"));
  else if (at("[data-save='csv']")) saveTable(at("[data-save]"));
  else if (at("[data-save]")) savePicture(at("[data-save]"));
  else if (at("[data-agree]")) agree(at("[data-example]"));
  else if (at("[data-answers]")) saveAnswers();
  else if (at("#theme")) switchTheme();
});
document.addEventListener("keydown", (event) => {
  const key = event.target.closest(".key");
  if (key && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    toggle(key);
  }
});
