// What the program wrote into the page: columns of numbers, where -1 is none and texts are numbers of
// one list. Of a program, `steps` are its blocks, those inside of loops and switches behind them, with
// their depth; `pieces` are bytes [begin, end) that hold a value while blocks [first, last] of the
// program's own list run. Times are microseconds.

const formats = {
  bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; Math.abs(value) >= 1024 && unit < 4; ++unit) value /= 1024;
    return `${unit === 0 ? value : Number(value.toPrecision(3))} ${units[unit]}`;
  },
  time(microseconds) {
    const size = Math.abs(microseconds);
    if (size >= 1e6) return `${Number((microseconds / 1e6).toPrecision(4))} s`;
    if (size >= 1e3) return `${Number((microseconds / 1e3).toPrecision(4))} ms`;
    return `${Number(microseconds.toPrecision(3))} us`;
  },
  count(value) { return Math.round(value).toLocaleString("en-US"); },
  share(part, whole) { return whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : "0%"; },
};

class PlanData {
  constructor(json) {
    Object.assign(this, json);
    for (const program of this.programs) this.complete(program);
    this.tensors.name ??= [];
    this.persistent.name ??= [];
  }

  /// Adds what is looked up often.
  complete(program) {
    const steps = program.steps, count = steps.name?.length ?? 0;
    program.stepCount = count;
    program.pieceCount = program.pieces.begin?.length ?? 0;
    program.top = new Int32Array(count); // the block of the program's own list
    program.first = [];                  // of each such block, its step
    for (let i = 0; i < count; ++i) {
      if (steps.depth[i] === 0) program.first.push(i);
      program.top[i] = program.first.length - 1;
    }
    program.first.push(count);
    program.blockCount = program.first.length - 1;
    program.total = Math.max(0, ...program.first.slice(0, -1).map((i) => steps.end[i]));
  }

  text(number) { return this.strings[number] ?? ""; }

  isStep(program, i) { return program.steps.class[i] >= 0; }

  /// Microseconds that it should take in a run of the program, and that it took.
  predicted(program, i) { return program.steps.us[i] * program.steps.times[i]; }
  measured(program, i) { return program.measured ? program.measured.us[i] : undefined; }

  place(location) {
    if (location < 0) return null;
    return {file: this.locations.file[location], line: this.locations.line[location]};
  }
  placeText(location) {
    const at = this.place(location);
    return at ? `${this.files[at.file].name}:${at.line}` : "";
  }
  lineText(location) {
    const at = this.place(location);
    return at ? this.files[at.file].lines?.[at.line - 1]?.trim() ?? "" : "";
  }

  /// Whether two tensors are views of one buffer.
  sameBuffer(a, b) {
    return a === b || (this.tensors.buffer[a] > 0 && this.tensors.buffer[a] === this.tensors.buffer[b]);
  }

  /// The step that writes a tensor's buffer in block `block`; else what the block is; -1: nothing does.
  writer(program, block, tensor) {
    const arguments_ = program.steps.arguments;
    for (let i = program.first[block]; i < program.first[block + 1]; ++i)
      for (let k = 0; k < arguments_[i].length; k += 2)
        if (arguments_[i][k + 1] !== 0 && this.sameBuffer(arguments_[i][k], tensor)) return i;
    return -1;
  }
}
