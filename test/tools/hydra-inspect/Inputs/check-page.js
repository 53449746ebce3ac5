// Checks of a page, in the page: each is a function by its name, and fails by throwing.
const viewer = window.hydraViewer, {data, memory, schedule} = viewer;
const lines = [];

function expect(condition, what) {
  if (!condition) throw new Error(what);
}

function equal(a, b, what) {
  expect(a === b, `${what}: ${a}, expected ${b}`);
}

/// Where the middle of what is seen of a rectangle is, in the plot.
function middle(chart, k) {
  const {x0, x1, y0, y1} = chart.rectangles, {time} = viewer;
  return [chart.toX((Math.max(x0[k], time.low) + Math.min(x1[k], time.high)) / 2),
          chart.toY((Math.max(y0[k], chart.y.low) + Math.min(y1[k], chart.y.high)) / 2)];
}

/// The smallest rectangle around a place, by asking all.
function smallest(chart, px, py) {
  const {x0, x1, y0, y1} = chart.rectangles, x = chart.fromX(px), y = chart.fromY(py);
  let best = -1, size = Infinity;
  for (let k = 0; k < x0.length; ++k) {
    const own = (x1[k] - x0[k]) * (y1[k] - y0[k]);
    if (x0[k] <= x && x <= x1[k] && y0[k] <= y && y <= y1[k] && own < size) { best = k; size = own; }
  }
  return best;
}

function point(chart, type, [px, py], more) {
  const {left, top} = chart.plot.getBoundingClientRect();
  const at = {clientX: left + px, clientY: top + py, bubbles: true, cancelable: true, pointerId: 1, ...more};
  chart.plot.dispatchEvent(type === "wheel" ? new WheelEvent(type, at) : new PointerEvent(type, at));
}

function key(name) {
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
}

function channels(colour) { return colour.match(/[\d.]+/g).map(Number); }

function luminance(colour) {
  const [r, g, b] = channels(colour).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/// The colour behind an element.
function behind(element) {
  for (; element; element = element.parentElement) {
    const {backgroundColor} = getComputedStyle(element), parts = channels(backgroundColor);
    if (parts.length < 4 || parts[3] === 1) return backgroundColor;
  }
  return "rgb(255, 255, 255)";
}

function resolved(variable) {
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const {color} = getComputedStyle(probe);
  probe.remove();
  return color;
}

const checks = {
  /// A frame is drawn, at any number of blocks, in less than a second; and no block is a node.
  draws() {
    const times = [];
    for (let i = 0; i < 3; ++i) {
      const begin = performance.now();
      memory.draw();
      schedule.draw();
      memory.brushOf(memory.canvas).getImageData(0, 0, 1, 1); // waits until it is there
      memory.draw();
      times.push(performance.now() - begin);
    }
    expect(Math.min(...times) < 1000, `a frame takes ${Math.min(...times)} ms`);
    const pixels = memory.canvas.getContext("2d").getImageData(0, 0, memory.canvas.width, memory.canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
    expect(colours.size > 4, `the memory map has ${colours.size} colours`);
    expect(document.querySelectorAll("*").length < 9000, "there are many nodes");
  },

  /// What is under the pointer is what a look at all rectangles finds.
  hits() {
    let seed = 1, found = 0;
    for (const chart of [memory, schedule]) {
      for (let i = 0; i < 300; ++i) {
        seed = seed * 16807 % 2147483647;
        const k = seed % chart.rectangles.x0.length;
        if (chart.rectangles.x1[k] <= chart.rectangles.x0[k]) continue;
        if (i % 2) chart.zoomTo(k);
        else viewer.showAll();
        const at = middle(chart, k), hit = chart.hit(...at), wanted = smallest(chart, ...at);
        equal(hit, wanted, `what is at ${at}`);
        found += hit === k;
      }
    }
    viewer.showAll();
    expect(found > 100, `only ${found} were found in their middle`);
  },

  /// The pointer over a buffer says its name, size, op and line; a click selects it and marks its line.
  hover() {
    const {pieces} = viewer.program, i = pieces.begin.findIndex((_, n) => data.writer(viewer.program, pieces.first[n], pieces.tensor[n]) >= 0 && data.locations.line[data.tensors.location[pieces.tensor[n]]] > 0);
    const k = memory.held + i;
    memory.zoomTo(k);
    const at = middle(memory, k);
    point(memory, "pointermove", at);
    const tip = document.getElementById("tip"), name = data.text(data.tensors.name[pieces.tensor[i]]);
    equal(tip.hidden, false, "the tip is hidden");
    equal(tip.querySelector("h2").textContent, name, "its heading");
    const said = [...tip.querySelectorAll("dt")].map((dt) => dt.textContent);
    for (const fact of ["bytes", "type", "op", "live", "line"]) expect(said.includes(fact), `the tip lacks ${fact}`);
    expect(tip.textContent.includes(formats.bytes(pieces.end[i] - pieces.begin[i])), "the tip lacks the bytes");
    point(memory, "pointerdown", at, {button: 0});
    point(memory, "pointerup", at, {button: 0});
    equal(viewer.selected?.number, i, "what is selected");
    equal(document.querySelector("#details h2").textContent, name, "the heading of the details");
    const marked = document.querySelector(".line.marked");
    equal(Number(marked?.dataset.line), data.locations.line[data.tensors.location[pieces.tensor[i]]], "the marked line");
    expect(viewer.related.some((thing) => thing.kind === "steps"), "no step belongs to it");
    point(memory, "pointerleave", at);
    equal(tip.hidden, true, "the tip is shown");
    viewer.showAll();
    viewer.clear();
  },

  /// All words must be there; Enter goes from one to the next; what is not found is pale.
  search() {
    const {program} = viewer, number = program.stepCount >> 1, name = data.text(program.steps.name[number]);
    const input = document.getElementById("search"), enter = () => input.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
    input.value = name;
    input.dispatchEvent(new Event("input"));
    expect(viewer.marks.steps[number] === 1, "the step is not found");
    const all = viewer.marks.steps.reduce((a, b) => a + b, 0);
    expect(all >= 1 && (all < program.stepCount || program.stepCount === 1), `${all} steps are found`);
    equal(viewer.marksOf(schedule).reduce((a, b) => a + b, 0), [...schedule.barsOf].reduce((sum, [step, bars]) => sum + viewer.marks.steps[step] * bars.length, 0), "bars that are not pale");
    enter();
    expect(viewer.selected.kind === "steps" && viewer.selected.number === viewer.marks.steps.indexOf(1), "Enter does not select the first step");
    const line = data.place(program.steps.location[number]).line;
    input.value = `line:${line}`;
    input.dispatchEvent(new Event("input"));
    viewer.marks.steps.forEach((mark, i) => equal(mark === 1, data.place(program.steps.location[i])?.line === line, `step ${i} of line ${line}`));
    input.value = "no such thing";
    input.dispatchEvent(new Event("input"));
    equal(document.getElementById("found").textContent, "0 steps, 0 buffers", "what was found");
    key("Escape");
    equal(viewer.marks, null, "marks");
    equal(input.value, "", "what is searched for");
  },

  keys() {
    viewer.showAll();
    const {time} = viewer, all = time.size;
    key("+");
    expect(time.size < all, "+ does not zoom");
    const {low} = time;
    key("ArrowRight");
    expect(time.low > low, "the arrow does not move");
    key("-");
    key("]");
    expect(memory.y.size < memory.y.total, "] does not zoom");
    key("0");
    expect(time.size === all && memory.y.size === memory.y.total, "0 does not show all");
    key("/");
    equal(document.activeElement.id, "search", "what / gives the focus");
    document.activeElement.blur();
    key("n");
    equal(viewer.selected?.kind, "steps", "what n selects");
    key("Escape");
    equal(viewer.selected, null, "what Esc leaves");
    key("m");
    equal(viewer.segment, "persistent", "the segment");
    key("m");
    key("m");
    key("?");
    equal(document.getElementById("keys").hidden, false, "the keys are hidden");
    key("?");
  },

  mouse() {
    const {time} = viewer, all = time.size, {left, top} = memory.plot.getBoundingClientRect();
    const at = [Math.round(left + 300) - left, Math.round(top + 30) - top], under = memory.fromX(at[0]); // events have whole pixels
    point(memory, "wheel", at, {deltaY: -300});
    expect(time.size < all, "the wheel does not zoom");
    expect(Math.abs(memory.fromX(at[0]) - under) < all * 1e-9, "what is under the pointer moves");
    point(memory, "wheel", at, {deltaY: -300, shiftKey: true});
    expect(memory.y.size < memory.y.total, "the wheel with shift does not zoom");
    const {low} = time;
    point(memory, "pointerdown", at, {button: 0});
    point(memory, "pointermove", [at[0] - 60, at[1]]);
    point(memory, "pointerup", [at[0] - 60, at[1]], {button: 0});
    expect(time.low > low, "dragging does not move");
    viewer.showAll();
  },

  /// Lines cost what their steps cost.
  lines() {
    const {program} = viewer;
    let sum = 0, all = 0;
    for (const cost of viewer.model.lineCosts.values()) sum += cost.predicted;
    for (let i = 0; i < program.stepCount; ++i) all += data.predicted(program, i);
    expect(Math.abs(sum - all) <= 1e-6 * all, `lines cost ${sum} us, steps ${all}`);
    const row = document.querySelector(".line:not(.head) .cost:not(:empty)").parentElement;
    row.click();
    equal(Number(document.querySelector(".line.marked").dataset.line), Number(row.dataset.line), "the marked line");
    expect(viewer.marks.steps.some(Boolean), "no step of the line is marked");
    viewer.clear();
  },

  legend() {
    const button = memory.legend.querySelector("button"), name = button.textContent.split(" ")[0];
    button.click();
    const kind = data.categories.indexOf(name), {pieces} = viewer.program;
    expect(kind >= 0, `${name} is no category`);
    viewer.marks.pieces.forEach((mark, i) => equal(mark === 1, data.tensors.category[pieces.tensor[i]] === kind, `buffer ${i}`));
    equal(memory.legend.querySelector("[aria-pressed=true]").textContent.split(" ")[0], name, "what is pressed");
    memory.legend.querySelector("[aria-pressed=true]").click();
    equal(viewer.marks, null, "marks");
  },

  /// Every text is readable in both themes, on paintings as well.
  contrast() {
    for (const theme of ["light", "dark"]) {
      viewer.set("theme", theme);
      viewer.model.show({file: 0, line: data.locations.line.find((line) => viewer.model.rows.has(`0:${line}`))});
      for (const element of document.querySelectorAll("body *:not(script)")) {
        if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) || !element.checkVisibility()) continue;
        const {color} = getComputedStyle(element), ratio = contrast(color, behind(element));
        expect(ratio >= 4.5, `${theme}: ${element.tagName}.${element.className} "${element.textContent.slice(0, 20)}" has ${ratio.toFixed(2)}`);
        if (element.style.getPropertyValue("--share")) expect(contrast(color, resolved("--bar")) >= 4.5, `${theme}: text on bars`);
      }
      const {ink, muted} = memory.colours, paper = behind(memory.plot);
      for (const colour of [ink, muted]) expect(contrast(colour, paper) >= 4.5, `${theme}: text of axes`);
      expect(contrast(ink, memory.colours.grid) >= 4.5, `${theme}: names of phases`);
    }
    for (const colour of data.palette) {
      const rgb = `rgb(${[1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).join(", ")})`;
      const text = memory.paints.make(colour, "plain").text === "#000000" ? "rgb(0, 0, 0)" : "rgb(255, 255, 255)";
      expect(contrast(rgb, text) >= 4.5, `text on ${colour}`);
    }
    viewer.set("theme", "system");
  },

  /// Steps and values say to which part of the model they belong, and are found by it.
  parts() {
    const {program} = viewer, number = program.steps.path.findIndex((path) => path >= 0), part = data.text(program.steps.path[number]);
    expect(part.startsWith("layers."), `the first part is ${part}`);
    viewer.select({kind: "steps", number});
    expect(document.getElementById("details").textContent.includes(part), `the details lack ${part}`);
    viewer.find(part);
    expect(viewer.marks.steps[number] === 1 && viewer.marks.pieces.some(Boolean), `nothing of ${part} is found`);
    viewer.clear();
  },

  /// Every program on every axis, and every segment.
  axes() {
    for (const program of data.programs) {
      viewer.set("program", program.name);
      for (const axis of axesOf(program)) {
        viewer.set("axis", axis);
        equal(viewer.timeline.axis, axis, "the axis");
        for (const segment of ["persistent", "arena", "transient"]) {
          viewer.set("segment", segment);
          memory.draw();
          schedule.draw();
          for (const chart of [memory, schedule]) {
            const {x0, x1, y0, y1} = chart.rectangles;
            for (let k = 0; k < x0.length; ++k)
              expect(x1[k] >= x0[k] && y1[k] > y0[k] && x0[k] >= 0 && x1[k] <= viewer.time.total * (1 + 1e-9),
                     `${program.name}, ${axis}, ${segment}: rectangle ${k} is [${x0[k]}, ${x1[k]}] x [${y0[k]}, ${y1[k]}]`);
          }
        }
      }
    }
    viewer.set("program", data.programs[0].name);
  },

  measured() {
    const {measured} = viewer.program;
    expect(measured.runs >= 1 && measured.microseconds > 0, "nothing is measured");
    equal(viewer.timeline.axis, "measured", "the axis");
    expect(measured.us.some((time) => time > 0), "no step took time");
    expect(document.querySelectorAll(".line .cost:nth-child(2):not(:empty)").length > 3, "no line has a measured time");
  },

  /// Names are text, whatever is in them.
  names() {
    equal(window.injected, undefined, "what a name did");
    expect(data.files.some((file) => file.name.includes("<\/script>")), "there is no such name");
    equal(document.querySelectorAll("img").length, 0, "images");
  },
};

for (const chart of [memory, schedule]) chart.resize();
for (const name of wanted) {
  try {
    checks[name]();
    lines.push(`${name}: passed`);
  } catch (error) {
    lines.push(`${name}: FAILED: ${error.message}`);
  }
}
const results = document.createElement("pre");
results.id = "results";
results.textContent = lines.join("\n");
document.body.append(results);
