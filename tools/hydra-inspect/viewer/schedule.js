// The schedule: a lane for each stream, with a row for what stands in the program's own list and rows
// below for what is inside of loops and switches. Colours are classes; a band above has the phases.

class ScheduleChart extends Chart {
  load() {
    const {data, program, timeline} = this.page, {steps} = program;
    const streams = [...new Set(timeline.stream)].sort((a, b) => a - b);
    const laneOf = new Map(streams.map((stream, i) => [stream, i])), depths = streams.map(() => 1);
    for (let k = 0; k < timeline.step.length; ++k) {
      const lane = laneOf.get(timeline.stream[k]);
      depths[lane] = Math.max(depths[lane], this.rowOf(k) + 1);
    }
    this.lanes = [];
    let top = 0;
    for (let i = 0; i < streams.length; ++i) {
      this.lanes.push({stream: streams[i], top, rows: depths[i]});
      top += depths[i] + 0.35;
    }
    this.phaseTop = top;
    top += 0.6;
    this.fill(top, laneOf);
    this.barsOf = new Map(); // of each step, its bars
    for (let k = 0; k < timeline.step.length; ++k) {
      const step = timeline.step[k];
      if (!this.barsOf.has(step)) this.barsOf.set(step, []);
      this.barsOf.get(step).push(k);
    }
    this.y.reset(top);
    this.plot.style.flexBasis = `${Math.min(38 * top + margins.top + margins.bottom, window.innerHeight * 0.4)}px`;
    this.loadPhases();
    const totals = data.classes.map(() => 0);
    const time = (i) => data.measured(program, i) ?? data.predicted(program, i);
    for (let i = 0; i < program.stepCount; ++i)
      if (steps.class[i] >= 0) totals[steps.class[i]] += Math.max(time(i), 1e-9);
    const sum = totals.reduce((a, b) => a + b, 0);
    this.fillLegend("time by class", data.classes, totals, this.page.marked("class"),
                    (kind) => this.page.markKind("class", kind), (part) => formats.share(part, sum));
  }

  /// Measured steps are in one row: those of loops follow each other.
  rowOf(k) {
    const {program, timeline} = this.page;
    return timeline.axis === "measured" ? 0 : program.steps.depth[timeline.step[k]];
  }

  /// A lane's rows go down from its top, and addresses of the axis go up.
  fill(height, laneOf) {
    const {program, timeline} = this.page, count = timeline.step.length;
    const y0 = new Float64Array(count), y1 = new Float64Array(count), kind = new Int16Array(count);
    for (let k = 0; k < count; ++k) {
      const lane = this.lanes[laneOf.get(timeline.stream[k])];
      y1[k] = height - 0.6 - lane.top - this.rowOf(k);
      y0[k] = y1[k] - 0.92;
      kind[k] = program.steps.class[timeline.step[k]];
    }
    this.setRectangles(timeline.begin, timeline.end, y0, y1, kind);
    this.height = height;
  }

  /// Neighbouring steps of a phase are one bar.
  loadPhases() {
    const {program, timeline} = this.page;
    const order = [...timeline.step.keys()].filter((k) => program.steps.phase[timeline.step[k]] >= 0);
    order.sort((a, b) => timeline.begin[a] - timeline.begin[b]);
    this.phases = [];
    for (const k of order) {
      const phase = program.steps.phase[timeline.step[k]], last = this.phases.at(-1);
      if (timeline.end[k] <= timeline.begin[k]) continue;
      if (last?.phase === phase) last.end = Math.max(last.end, timeline.end[k]);
      else this.phases.push({phase, begin: timeline.begin[k], end: timeline.end[k]});
    }
  }

  label(k) {
    const {data, program, timeline} = this.page;
    return data.text(program.steps.name[timeline.step[k]]);
  }

  drawYAxis(brush) {
    const inside = (y) => y > this.area.top && y < this.area.top + this.area.height;
    for (const lane of this.lanes) {
      const y = this.toY(this.height - 0.6 - lane.top - lane.rows / 2);
      if (inside(y)) brush.fillText(`stream ${lane.stream}`, this.area.left - 5, y);
    }
    const y = this.toY(this.height - 0.25);
    if (inside(y)) brush.fillText("phase", this.area.left - 5, y);
  }

  drawExtras(brush) {
    const {ink, grid} = this.colours, {left, width} = this.area;
    brush.textBaseline = "middle";
    for (const {phase, begin, end} of this.phases) {
      const a = Math.max(this.toX(begin), left), b = Math.min(this.toX(end), left + width);
      const c = this.toY(this.height - 0.02), d = this.toY(this.height - 0.48);
      if (b <= a) continue;
      brush.fillStyle = grid;
      brush.fillRect(a, c, Math.max(b - a - 1, 0.5), d - c);
      const text = this.page.data.phases[phase];
      brush.fillStyle = ink;
      if (d - c > 10 && b - a > text.length * letterWidth + 6) brush.fillText(text, a + 3, (c + d) / 2);
    }
  }
}
