// The text of the model with what each line costs beside it. Where the text is not in the page, the lines
// that cost something are there by their numbers.

const modelWords = /(\/\/.*$)|("[^"]*")|(%[\w.#]+)|(@[\w.]+)|(hydra\.[\w.]+)/g;
const modelClasses = ["comment", "symbol", "value", "symbol", "word"];

class ModelPane {
  constructor(page, element) {
    this.page = page;
    this.element = element;
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".line:not(.head)");
      if (row) page.pickLine(Number(row.dataset.file), Number(row.dataset.line));
    });
  }

  /// Microseconds of lines, by file and line.
  costs() {
    const {data, program} = this.page, lines = new Map();
    this.totals = {predicted: 0, measured: 0};
    for (let i = 0; i < program.stepCount; ++i) {
      const at = data.place(program.steps.location[i]);
      if (!at) continue;
      const key = `${at.file}:${at.line}`, cost = lines.get(key) ?? {predicted: 0, measured: 0, ...at};
      const parts = {predicted: data.predicted(program, i), measured: data.measured(program, i) ?? 0};
      for (const kind in parts) {
        cost[kind] += parts[kind];
        this.totals[kind] += parts[kind];
      }
      lines.set(key, cost);
    }
    return lines;
  }

  load() {
    const {data, program} = this.page;
    this.lineCosts = this.costs();
    this.rows = new Map();
    const rows = [this.heading()];
    data.files.forEach((file, number) => {
      const costly = [...this.lineCosts.values()].filter((cost) => cost.file === number).sort((a, b) => a.line - b.line);
      if (data.files.length > 1 && (file.lines || costly.length > 0)) rows.push(this.note(file.name));
      if (file.lines) file.lines.forEach((text, i) => rows.push(this.row(number, i + 1, text)));
      else {
        rows.push(this.note(`The text of ${file.name} is not in this page: hydra-inspect --model=FILE puts it here.`));
        for (const {line} of costly) rows.push(this.row(number, line, ""));
      }
    });
    this.element.replaceChildren(...rows);
    this.element.classList.toggle("measured", Boolean(program.measured));
  }

  note(text) {
    const note = document.createElement("p");
    note.textContent = text;
    return note;
  }

  static span(name, text) {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    return span;
  }

  heading() {
    const row = document.createElement("div");
    row.className = "line head";
    row.append(ModelPane.span("cost", "predicted"));
    if (this.page.program.measured) row.append(ModelPane.span("cost", "measured"));
    row.append(ModelPane.span("number", "line"), this.page.program.name);
    return row;
  }

  cost(cost, kind) {
    const part = cost?.[kind] ?? 0, span = ModelPane.span("cost", part > 0 ? formats.time(part) : "");
    if (part > 0) span.style.setProperty("--share", formats.share(part, this.totals[kind]));
    return span;
  }

  row(file, line, text) {
    const row = document.createElement("div"), key = `${file}:${line}`, cost = this.lineCosts.get(key);
    row.className = "line";
    row.dataset.file = file;
    row.dataset.line = line;
    row.append(this.cost(cost, "predicted"));
    if (this.page.program.measured) row.append(this.cost(cost, "measured"));
    row.append(ModelPane.span("number", line));
    const code = document.createElement("span");
    let at = 0;
    for (const match of text.matchAll(modelWords)) {
      code.append(text.slice(at, match.index));
      code.append(ModelPane.span(modelClasses[match.slice(1).findIndex(Boolean)], match[0]));
      at = match.index + match[0].length;
    }
    code.append(text.slice(at));
    row.append(code);
    this.rows.set(key, row);
    return row;
  }

  /// Marks the line of a place, and shows it.
  show(at) {
    this.element.querySelector(".line.marked")?.classList.remove("marked");
    const row = at && this.rows.get(`${at.file}:${at.line}`);
    if (!row) return;
    row.classList.add("marked");
    const {top, bottom} = this.element.getBoundingClientRect(), bounds = row.getBoundingClientRect();
    if (bounds.top < top + 24 || bounds.bottom > bottom)
      this.element.scrollTop += bounds.top - top - this.element.clientHeight / 2;
  }
}
