// Where steps and values lie on the time axis. It is one of three: predicted and measured microseconds,
// or every block of the program's own list as wide as the others.

const axisNames = {predicted: "predicted time", measured: "measured time", steps: "steps, equally wide"};

function axesOf(program) {
  const axes = program.total > 0 ? ["predicted"] : [];
  if (program.measured) axes.unshift("measured");
  return [...axes, "steps"];
}

class Timeline {
  constructor(data, program, axis) {
    this.program = program;
    this.axis = axis;
    const spans = axis === "measured" ? this.measured() : axis === "predicted" ? this.predicted() : this.equal();
    this.step = spans.step; // of each bar of the schedule, its step
    this.begin = spans.begin;
    this.end = spans.end;
    this.stream = spans.stream;
    this.placeBlocks();
    this.total = axis === "steps" ? program.blockCount : Math.max(this.blockEnd.at(-1) ?? 0, 0);
  }

  predicted() {
    const {steps, stepCount} = this.program;
    return {step: Uint32Array.from({length: stepCount}, (_, i) => i), begin: Float64Array.from(steps.begin ?? []),
            end: Float64Array.from(steps.end ?? []), stream: steps.stream ?? []};
  }

  measured() {
    const {spans} = this.program.measured;
    return {step: Uint32Array.from(spans.step), begin: Float64Array.from(spans.begin),
            end: Float64Array.from(spans.end), stream: spans.stream};
  }

  /// A block is 1 wide; what is inside of it keeps its share.
  equal() {
    const {steps, stepCount, top, first} = this.program;
    const spans = this.predicted();
    for (let i = 0; i < stepCount; ++i) {
      const outer = first[top[i]], from = steps.begin[outer], width = steps.end[outer] - from;
      spans.begin[i] = top[i] + (width > 0 ? (steps.begin[i] - from) / width : 0);
      spans.end[i] = top[i] + (width > 0 ? (steps.end[i] - from) / width : 1);
    }
    return spans;
  }

  /// Of each block the times between which its values are taken as live. Streams change the order of
  /// blocks, and a value lives from the earliest block that may use it to the last.
  placeBlocks() {
    const {blockCount, top} = this.program;
    this.blockBegin = new Float64Array(blockCount).fill(Infinity);
    this.blockEnd = new Float64Array(blockCount).fill(-Infinity);
    for (let k = 0; k < this.step.length; ++k) {
      const block = top[this.step[k]];
      this.blockBegin[block] = Math.min(this.blockBegin[block], this.begin[k]);
      this.blockEnd[block] = Math.max(this.blockEnd[block], this.end[k]);
    }
    let reached = 0;
    for (let i = 0; i < blockCount; ++i) reached = this.blockEnd[i] = Math.max(reached, this.blockEnd[i]);
    for (let i = blockCount - 1; i >= 0; --i) reached = this.blockBegin[i] = Math.min(reached, this.blockBegin[i]);
  }

  text(value) {
    return this.axis === "steps" ? `step ${formats.count(Math.floor(value))}` : formats.time(value);
  }
}
