# The same 120 documents in every form that hydra-data reads.
import gzip, json, sys

speeches = open(sys.argv[1]).read().split("\n\n")[:120]
lines = [json.dumps({"text": speech, "id": i}) + "\n" for i, speech in enumerate(speeches)]
open("lines.jsonl", "w").write("".join(lines))
gzip.open("lines.jsonl.gz", "wt").write("".join(lines))
open("half1.jsonl", "w").write("".join(lines[:50]))
gzip.open("half2.jsonl.gz", "wt").write("".join(lines[50:]))
open("blank.txt", "w").write("\n\n".join(speeches) + "\n\n")
open("marked.txt", "w").write("".join(speech + "\n<end>\n" for speech in speeches))
open("bad.jsonl", "w").write(lines[0] + '{"text": \n' + lines[1])
with open("turns.jsonl", "w") as turns:
    for speech in speeches:
        speaker, _, said = speech.partition("\n")
        turns.write(json.dumps({"speaker": speaker + "\n", "speech": said}) + "\n")
