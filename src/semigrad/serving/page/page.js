"use strict";

const MOST_SHOWN = 10;
const part = (id) => document.getElementById(id);
let mostBytes = Infinity;
let asked = 0;

function say(text, wrong = false) {
    part("said").textContent = text;
    part("said").classList.toggle("wrong", wrong);
}

function show(answer) {
    const rows = Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1]).slice(0, MOST_SHOWN);
    const percent = (share) => `${(100 * share).toFixed(1)} %`;
    part("answer").tBodies[0].replaceChildren(...rows.map(([name, share]) => {
        const row = document.createElement("tr");
        const bar = document.createElement("meter");
        bar.value = share;
        bar.setAttribute("aria-label", percent(share));
        row.insertCell().textContent = name;
        row.insertCell().append(bar);
        row.insertCell().textContent = percent(share);
        return row;
    }));
    part("answer").hidden = false;
    say([`${answer.class}, ${percent(answer.confidence)} sure`, ...(answer.notes ?? [])].join("; "));
}

async function ask(body, type) {
    const number = ++asked;
    part("answer").hidden = true;
    if ((body.size ?? body.length) > mostBytes) {
        return say(`That is more than the ${mostBytes.toLocaleString()} bytes that are taken.`, true);
    }
    say("…");
    try {
        const reply = await fetch("/predict", { method: "POST", body, headers: { "Content-Type": type } });
        const found = await reply.json();
        if (number !== asked) return;
        if (!reply.ok) return say(found.error, true);
        show(found.answers ? found.answers[0] : found);
    } catch {
        if (number === asked) say("The service does not answer.", true);
    }
}

function picture(file) {
    if (!file) return;
    const preview = part("preview");
    URL.revokeObjectURL(preview.src);
    preview.onload = () => { preview.hidden = false; };
    preview.onerror = () => { preview.hidden = true; };
    preview.src = URL.createObjectURL(file);
    ask(file, "application/octet-stream");
}

function example(model) {
    if (!model.columns) return JSON.stringify(Array(model.features).fill(0));
    const value = (column) => column.categories.length ? column.categories[0] : 0;
    return JSON.stringify(Object.fromEntries(model.columns.map((column) => [column.name, value(column)])), null, 1);
}

async function begin() {
    const model = await (await fetch("/model")).json();
    mostBytes = model.most_bytes;
    const more = model.classes.length - MOST_SHOWN;
    const named = model.classes.slice(0, MOST_SHOWN).join(", ") + (more > 0 ? ` and ${more.toLocaleString()} more` : "");
    part("input").textContent = `The model knows ${model.classes.length.toLocaleString()} classes: ${named}.`;
    part("confidence").textContent = model.confidence;
    part("text").value = model.takes === "row" ? example(model) : "";
    part(model.takes).hidden = false;
}

for (const kind of ["dragover", "dragleave", "drop"]) {
    // anywhere: a picture that is let go beside the field would replace the page
    document.addEventListener(kind, (event) => {
        if (!part("row").hidden) return;
        event.preventDefault();
        part("drop").classList.toggle("over", kind === "dragover");
        if (kind === "drop") picture(event.dataTransfer.files[0]);
    });
}
part("file").addEventListener("change", (event) => picture(event.target.files[0]));
part("row").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(part("text").value, "application/json");
});
begin().catch(() => say("The service does not answer.", true));
