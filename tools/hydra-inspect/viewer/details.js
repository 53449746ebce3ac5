// What is said of a step or a buffer, beside the pointer and, of what is selected, in the corner.

class Details {
  constructor(page, corner, tip) {
    this.page = page;
    this.corner = corner;
    this.tip = tip;
  }

  /// Heading and [name, value] pairs; values are text.
  of({kind, number}) {
    return kind === "steps" ? this.ofStep(number) : kind === "pieces" ? this.ofPiece(number) : this.ofPersistent(number);
  }

  ofStep(i) {
    const {data, program} = this.page, {steps} = program, list = steps.arguments[i];
    const facts = [["step", `${data.text(steps.place[i])} of ${program.name}, stream ${steps.stream[i]}`]];
    if (data.isStep(program, i)) {
      const layer = steps.layer[i] >= 0 ? `, layer ${steps.layer[i]}` : "";
      const predicted = data.predicted(program, i), measured = data.measured(program, i);
      facts.push(["op", data.text(steps.does[i])],
                 ...this.part(steps.path[i]),
                 ["kind", `${data.phases[steps.phase[i]]}, ${data.classes[steps.class[i]]}${layer}`],
                 ["predicted", `${formats.time(predicted)}${steps.times[i] > 1 ? `, ${formats.count(steps.times[i])} times together` : ""}`]);
      if (measured !== undefined)
        facts.push(["measured", measured > 0 ? `${formats.time(measured)}${predicted > 0 ? `, ${(measured / predicted).toFixed(2)} times predicted` : ""}` : "did not run"]);
      facts.push(["work", `${formats.count(steps.flops[i])} flops, ${formats.bytes(steps.bytes[i])} of traffic`]);
      const names = (access) => list.flatMap((tensor, k) => k % 2 === 0 && access(list[k + 1]) ? [this.tensorText(tensor)] : []);
      const reads = names((access) => access !== 1), writes = names((access) => access !== 0);
      if (reads.length > 0) facts.push(["reads", reads.join("; ")]);
      if (writes.length > 0) facts.push(["writes", writes.join("; ")]);
    } else {
      facts.push(["time", formats.time(steps.end[i] - steps.begin[i])]);
    }
    if (steps.pass[i] >= 0) facts.push(["made by", data.text(steps.pass[i])]);
    return {heading: data.text(steps.name[i]), facts: [...facts, ...this.place(steps.location[i])]};
  }

  tensorText(t) {
    const {tensors} = this.page.data, {data} = this.page;
    return `${data.text(tensors.name[t])} ${data.text(tensors.type[t])}`;
  }

  ofPiece(i) {
    const {data, program} = this.page, {pieces, steps, first} = program, t = pieces.tensor[i];
    const stepText = (number) => `${data.text(steps.place[number])} ${data.text(steps.name[number])}`;
    const writer = data.writer(program, pieces.first[i], t);
    return {heading: data.text(data.tensors.name[t]), facts: [
      ...this.part(data.tensors.path[t]),
      ["bytes", `${formats.bytes(pieces.end[i] - pieces.begin[i])} at ${formats.count(pieces.begin[i])} of the transient segment`],
      ["type", `${data.text(data.tensors.type[t])}, ${data.categories[data.tensors.category[t]]}${this.layer(t)}`],
      ["op", writer < 0 ? "given to the program" : `${stepText(writer)}: ${data.text(steps.does[writer])}`],
      ["live", `from ${stepText(first[pieces.first[i]])} to ${stepText(first[pieces.last[i]])}`],
      ...this.place(data.tensors.location[t])]};
  }

  ofPersistent(i) {
    const {data} = this.page, {persistent} = data, t = persistent.tensor[i];
    return {heading: data.text(persistent.name[i]), facts: [
      ["bytes", `${formats.bytes(persistent.end[i] - persistent.begin[i])} at ${formats.count(persistent.begin[i])} of the persistent segment`],
      ["type", `${data.text(data.tensors.type[t])}, ${data.categories[data.tensors.category[t]]}${this.layer(t)}`],
      ["role", data.text(persistent.role[i]).replace("_", " ")],
      ...this.place(data.tensors.location[t])]};
  }

  part(path) { return path < 0 ? [] : [["part", this.page.data.text(path)]]; }

  layer(t) {
    const layer = this.page.data.tensors.layer[t];
    return layer >= 0 ? `, layer ${layer}` : "";
  }

  place(location) {
    const {data} = this.page, where = data.placeText(location), line = data.lineText(location);
    return where === "" ? [] : line === "" ? [["line", where]] : [["line", where], ["", line]];
  }

  static fill(element, {heading, facts}) {
    const title = document.createElement("h2"), list = document.createElement("dl");
    title.textContent = heading;
    list.className = "facts";
    for (const [name, value] of facts) {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name;
      dd.textContent = value;
      list.append(dt, dd);
    }
    element.replaceChildren(title, list);
  }

  /// Of nothing selected: the plan.
  show(thing) {
    const {data, program} = this.page;
    if (thing) return Details.fill(this.corner, this.of(thing));
    const facts = [...data.facts, ["arena", `${formats.bytes(data.persistent_bytes)} persistent, ${formats.bytes(program.transient_bytes)} transient in ${program.name}`]];
    if (program.total > 0) facts.push(["step", `${formats.time(program.total)} predicted for ${program.name}`]);
    if (program.measured)
      facts.push(["", `${formats.time(program.measured.microseconds)} measured, the median of ${program.measured.runs} runs, which is shown; steps have their means`]);
    Details.fill(this.corner, {heading: data.title, facts});
  }

  follow(thing, event) {
    this.tip.hidden = !thing || !event;
    if (this.tip.hidden) return;
    Details.fill(this.tip, this.of(thing));
    const {width, height} = this.tip.getBoundingClientRect();
    const left = event.clientX + 16 + width > window.innerWidth ? event.clientX - width - 16 : event.clientX + 16;
    const top = Math.min(event.clientY + 16, window.innerHeight - height - 4);
    this.tip.style.left = `${Math.max(left, 4)}px`;
    this.tip.style.top = `${Math.max(top, 4)}px`;
  }
}
