// The page: what is shown of which program, what is marked and selected, and the keys.

class Page {
  constructor(data) {
    this.data = data;
    this.time = new AxisRange(1);
    this.cursor = null;
    this.selected = null; // {kind: steps | pieces | persistent, number}
    this.hovered = null;
    this.marks = null;    // by kind; what is not marked is pale
    this.mark = null;     // of a legend: {what, kind}
    this.segment = "transient";
    const at = (id) => document.getElementById(id);
    const paints = (numbers) => new Paints(data.palette, data.textures, numbers);
    this.program = data.programs[0];
    this.axis = axesOf(this.program)[0];
    this.timeline = new Timeline(data, this.program, this.axis);
    this.memory = new MemoryChart(this, at("memory"), paints(data.category_paints));
    this.schedule = new ScheduleChart(this, at("schedule"), paints(data.class_paints));
    this.model = new ModelPane(this, at("model"));
    this.search = new Search(this);
    this.details = new Details(this, at("details"), at("tip"));
    at("title").textContent = data.title;
    this.controls = {program: at("program"), axis: at("axis"), segment: at("segment"), search: at("search"),
                     found: at("found"), theme: at("theme"), help: at("help"), keys: at("keys")};
    this.listen();
    this.load();
    this.readHash();
  }

  //---- What is shown

  static options(select, values, names) {
    select.replaceChildren(...values.map((value) => new Option(names?.[value] ?? value, value)));
  }

  /// Begins anew with the program.
  load() {
    const {program, axis, segment} = this.controls, axes = axesOf(this.program);
    if (!axes.includes(this.axis)) this.axis = axes[0];
    Page.options(program, this.data.programs.map((one) => one.name));
    Page.options(axis, axes, axisNames);
    Page.options(segment, Object.keys(segmentNames), segmentNames);
    program.value = this.program.name;
    axis.value = this.axis;
    segment.value = this.segment;
    this.model.load();
    this.reload();
    this.clear();
  }

  /// The same program on another axis.
  reload() {
    this.timeline = new Timeline(this.data, this.program, this.axis);
    this.time.reset(this.timeline.total);
    this.memory.load();
    this.schedule.load();
    this.redraw();
  }

  set(what, value) {
    if (what === "program") {
      const program = this.data.programs.find((one) => one.name === value);
      if (!program) return;
      this.program = program;
      this.load();
    } else if (what === "axis" && axesOf(this.program).includes(value)) {
      this.controls.axis.value = this.axis = value;
      this.reload();
    } else if (what === "segment" && value in segmentNames) {
      this.controls.segment.value = this.segment = value;
      this.memory.load();
      this.redraw();
    } else if (what === "theme") {
      if (value === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = value;
      this.controls.theme.textContent = `theme: ${value}`;
      this.redraw();
    } else if (what === "search") {
      this.controls.search.value = value;
      this.find(value);
    }
  }

  /// A link can say what to show: #program=eval&axis=steps&segment=arena&theme=dark&search=wq
  readHash() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const what of ["program", "axis", "segment", "theme", "search"])
      if (wanted.has(what)) this.set(what, wanted.get(what));
    if (!wanted.has("theme")) this.set("theme", document.documentElement.dataset.theme ?? "system");
  }

  next(what, values) {
    const select = this.controls[what], list = values ?? [...select.options].map((option) => option.value);
    const now = what === "theme" ? document.documentElement.dataset.theme ?? "system" : select.value;
    this.set(what, list[(list.indexOf(now) + 1) % list.length]);
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.memory.draw();
      this.schedule.draw();
    });
  }
  redrawOver() {
    this.memory.drawOver();
    this.schedule.drawOver();
  }

  //---- Marks

  /// Of a chart's rectangles, which are marked; null: all.
  marksOf(chart) {
    if (!this.marks) return null;
    const {rectangles: {x0}} = chart, marks = new Uint8Array(x0.length);
    for (let k = 0; k < marks.length; ++k) {
      const {kind, number} = this.thing(chart, k);
      marks[k] = this.marks[kind][number];
    }
    return marks;
  }

  marked(what) { return this.mark?.what === what ? this.mark.kind : -1; }

  /// Marks what is of a category or class, with what belongs to it: steps that write, values written.
  markKind(what, kind) {
    const isOff = this.marked(what) === kind, {data, program} = this;
    this.clear();
    if (isOff) return;
    this.mark = {what, kind};
    const {steps, pieces} = program, ofTensor = (t) => data.tensors.category[t] === kind;
    const byCategory = what === "category";
    this.setMarks({
      steps: byCategory
        ? (i) => steps.arguments[i].some((t, k, list) => k % 2 === 0 && list[k + 1] !== 0 && ofTensor(t))
        : (i) => steps.class[i] === kind,
      pieces: byCategory ? (i) => ofTensor(pieces.tensor[i])
                         : (i) => steps.class[data.writer(program, pieces.first[i], pieces.tensor[i])] === kind,
      persistent: byCategory ? (i) => ofTensor(data.persistent.tensor[i]) : () => false});
    this.memory.showLegend();
    this.schedule.load();
  }

  setMarks(tests) {
    const counts = {steps: this.program.stepCount, pieces: this.program.pieceCount, persistent: this.data.persistent.name.length};
    this.marks = {hits: []};
    for (const kind in counts)
      this.marks[kind] = Uint8Array.from({length: counts[kind]}, (_, i) => tests[kind](i) ? 1 : 0);
    this.redraw();
  }

  find(query) {
    this.mark = null;
    this.marks = this.search.find(query);
    this.at = -1;
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    this.controls.found.textContent = this.marks
      ? `${formats.count(sum(this.marks.steps))} steps, ${formats.count(sum(this.marks.pieces) + sum(this.marks.persistent))} buffers` : "";
    this.redraw();
  }

  /// Goes to the next (1) or previous (-1) of what was found, else of the steps.
  go(direction) {
    const hits = this.marks?.hits ?? [];
    const count = hits.length || this.program.stepCount;
    if (count === 0) return;
    const begin = hits.length > 0 ? this.at : this.selected?.kind === "steps" ? this.selected.number : -1;
    this.at = ((begin ?? -1) + direction + (begin < 0 && direction < 0 ? 1 : 0) + count) % count;
    this.select(hits.length > 0 ? hits[this.at] : {kind: "steps", number: this.at});
    this.reveal();
  }

  //---- Selection

  /// What a rectangle of a chart stands for.
  thing(chart, k) {
    if (chart === this.schedule) return {kind: "steps", number: this.timeline.step[k]};
    return {kind: chart.isPersistent(k) ? "persistent" : "pieces", number: chart.number(k)};
  }

  /// The rectangles of a chart that stand for a thing.
  barsOf(chart, thing) {
    if (!thing) return [];
    if (chart === this.schedule) return thing.kind === "steps" ? this.schedule.barsOf.get(thing.number) ?? [] : [];
    if (thing.kind === "steps") return [];
    const bar = this.memory.bar(thing.kind === "persistent", thing.number);
    return bar < 0 ? [] : [bar];
  }

  /// Buffers of a step; steps that touch a buffer.
  relatedTo(thing) {
    const {data, program} = this, {steps, pieces} = program, related = [];
    const touches = (i, tensor) => steps.arguments[i].some((t, k) => k % 2 === 0 && data.sameBuffer(t, tensor));
    if (thing.kind === "steps") {
      const block = program.top[thing.number];
      for (let i = 0; i < program.pieceCount; ++i)
        if (pieces.first[i] <= block && block <= pieces.last[i] && touches(thing.number, pieces.tensor[i]))
          related.push({kind: "pieces", number: i});
      data.persistent.tensor?.forEach((t, i) => { if (touches(thing.number, t)) related.push({kind: "persistent", number: i}); });
    } else {
      const isPiece = thing.kind === "pieces", tensor = (isPiece ? pieces : data.persistent).tensor[thing.number];
      for (let i = 0; i < program.stepCount; ++i) {
        if (isPiece && (program.top[i] < pieces.first[thing.number] || program.top[i] > pieces.last[thing.number])) continue;
        if (touches(i, tensor)) related.push({kind: "steps", number: i});
      }
    }
    return related;
  }

  outlinesOf(chart) {
    return {selected: this.barsOf(chart, this.selected), hovered: this.barsOf(chart, this.hovered),
            related: (this.related ?? []).flatMap((thing) => this.barsOf(chart, thing))};
  }

  select(thing) {
    this.selected = thing;
    this.related = thing ? this.relatedTo(thing) : [];
    this.details.show(thing);
    const {data, program} = this;
    this.model.show(thing && data.place(
      thing.kind === "steps" ? program.steps.location[thing.number]
                             : data.tensors.location[(thing.kind === "pieces" ? program.pieces : data.persistent).tensor[thing.number]]));
    this.redrawOver();
  }

  pick(chart, k) { this.select(k < 0 ? null : this.thing(chart, k)); }

  pickLine(file, line) {
    const {data, program} = this, {steps, pieces} = program;
    const isThere = (location) => { const at = data.place(location); return at?.file === file && at.line === line; };
    this.clear();
    this.setMarks({steps: (i) => isThere(steps.location[i]),
                   pieces: (i) => isThere(data.tensors.location[pieces.tensor[i]]),
                   persistent: (i) => isThere(data.tensors.location[data.persistent.tensor[i]])});
    for (const kind of ["steps", "pieces", "persistent"])
      this.marks[kind].forEach((isMarked, number) => { if (isMarked) this.marks.hits.push({kind, number}); });
    this.at = -1;
    this.model.show({file, line});
  }

  /// Moves the view to what is selected.
  reveal() {
    for (const chart of [this.schedule, this.memory]) {
      const bars = this.barsOf(chart, this.selected);
      if (bars.length === 0) continue;
      const {x0, x1, y0, y1} = chart.rectangles, k = bars[0];
      this.time.reveal(x0[k], x1[k]);
      if (chart === this.memory) chart.y.reveal(y0[k], y1[k]);
      this.redraw();
    }
  }

  hover(chart, k, event, cursor) {
    this.hovered = k < 0 ? null : this.thing(chart, k);
    this.cursor = cursor;
    this.details.follow(this.hovered, event);
    this.redrawOver();
  }

  clear() {
    this.marks = this.mark = null;
    this.at = -1;
    this.controls.search.value = "";
    this.controls.found.textContent = "";
    this.select(null);
    this.memory.showLegend();
    this.schedule.load();
    this.redraw();
  }

  showAll() {
    this.time.reset(this.timeline.total);
    for (const chart of [this.memory, this.schedule]) chart.y.reset(chart.y.total);
    this.redraw();
  }

  //---- Keys

  listen() {
    const {program, axis, segment, search, theme, help} = this.controls;
    for (const [what, select] of Object.entries({program, axis, segment}))
      select.onchange = () => this.set(what, select.value);
    theme.onclick = () => this.press("t");
    help.onclick = () => this.press("?");
    search.oninput = () => this.find(search.value);
    search.onkeydown = (event) => {
      if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
      if (event.key !== "Escape") return;
      this.clear();
      search.blur();
    };
    document.addEventListener("keydown", (event) => {
      const {tagName} = event.target;
      if (event.ctrlKey || event.metaKey || event.altKey || tagName === "INPUT" || tagName === "SELECT") return;
      if (event.target.id === "model" && event.key.startsWith("Arrow")) return; // it scrolls
      if (this.press(event.key)) event.preventDefault();
    });
    window.addEventListener("hashchange", () => this.readHash());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /// Whether the key means something.
  press(key) {
    const move = (range, part) => { range.pan(part); this.redraw(); };
    const zoom = (range, factor) => { range.zoom(factor); this.redraw(); };
    const keys = {
      ArrowLeft: () => move(this.time, -0.15), ArrowRight: () => move(this.time, 0.15),
      ArrowUp: () => move(this.memory.y, 0.15), ArrowDown: () => move(this.memory.y, -0.15),
      "+": () => zoom(this.time, 1 / 1.5), "=": () => zoom(this.time, 1 / 1.5), "-": () => zoom(this.time, 1.5),
      "]": () => zoom(this.memory.y, 1 / 1.5), "[": () => zoom(this.memory.y, 1.5),
      0: () => this.showAll(), n: () => this.go(1), p: () => this.go(-1),
      "/": () => this.controls.search.focus(), Escape: () => this.clear(),
      x: () => this.next("axis"), m: () => this.next("segment"),
      t: () => this.next("theme", ["system", "dark", "light"]),
      "?": () => {
        const {keys, help} = this.controls;
        keys.hidden = !keys.hidden;
        help.setAttribute("aria-expanded", !keys.hidden);
      },
    };
    keys[key]?.();
    return key in keys;
  }
}

window.hydraViewer = new Page(new PlanData(JSON.parse(document.getElementById("data").textContent)));
