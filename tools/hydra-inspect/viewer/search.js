// What contains all words: steps, values (what makes them counts too) and persistent things. `line:12` and `layer:3` are that line and
// that layer, and nothing else.

class Search {
  constructor(page) { this.page = page; }

  /// Texts of all that can be found; made when somebody searches.
  load() {
    const {data, program} = this.page, {steps, pieces} = program, {tensors} = data;
    const place = (location) => {
      const at = data.place(location);
      return at ? ` ${data.files[at.file].name}:${at.line} line:${at.line} ` : " ";
    };
    const layer = (number) => number >= 0 ? ` layer:${number} ` : " ";
    this.steps = Array.from({length: program.stepCount}, (_, i) => [
      data.text(steps.name[i]), data.text(steps.does[i]), data.text(steps.path[i]), data.text(steps.pass[i]), data.classes[steps.class[i]], data.phases[steps.phase[i]],
      place(steps.location[i]), layer(steps.layer[i])].join(" ").toLowerCase());
    const tensorTexts = [];
    const tensorText = (t) => tensorTexts[t] ??= [
      data.text(tensors.name[t]), data.text(tensors.path[t]), data.text(tensors.type[t]), data.categories[tensors.category[t]],
      place(tensors.location[t]), layer(tensors.layer[t])].join(" ").toLowerCase();
    this.pieces = Array.from({length: program.pieceCount}, (_, i) => {
      const writer = data.writer(program, pieces.first[i], pieces.tensor[i]);
      return tensorText(pieces.tensor[i]) + (writer < 0 ? "" : `${data.text(steps.name[writer])} ${data.text(steps.does[writer])}`.toLowerCase());
    });
    this.persistent = data.persistent.name.map((name, i) =>
      `${data.text(name)} ${data.text(data.persistent.role[i])} ${tensorText(data.persistent.tensor[i])}`.toLowerCase());
    this.program = program;
  }

  /// Marks by kind and the found ones in a row; null where nothing is asked.
  find(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean)
                       .map((word) => /^(line|layer):\d+$/.test(word) ? ` ${word} ` : word);
    if (words.length === 0) return null;
    if (this.program !== this.page.program) this.load();
    const found = {hits: []};
    for (const kind of ["steps", "pieces", "persistent"]) {
      const texts = this[kind], marks = found[kind] = new Uint8Array(texts.length);
      texts.forEach((text, i) => {
        if (!words.every((word) => ` ${text} `.includes(word))) return;
        marks[i] = 1;
        found.hits.push({kind, number: i});
      });
    }
    return found;
  }
}
