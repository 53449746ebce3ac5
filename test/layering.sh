#!/usr/bin/env bash
# Fails if a folder includes what its layer may not know (docs/architecture.md), if folders include each
# other in a circle, or if an include of the project is not written from the root.
# Usage: layering.sh ROOT
set -euo pipefail
cd "$1"

# sources FOLDER: what may include something, in a fixed order.
sources() {
  find "$1" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.c' -o -name '*.inc' \
    -o -name '*.td' -o -name '*.fbs' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z
}

# check FOLDER ALLOWED FORBIDDEN: of the project, FOLDER may include only what the regular
# expression ALLOWED matches; of other libraries, nothing that FORBIDDEN matches.
check() {
  [ -d "$1" ] || return 0
  sources "$1" |
    xargs -0 --no-run-if-empty awk -v folder="$1" -v allowed="$2" -v forbidden="$3" '
      match($0, /^[ \t]*#?[ \t]*include[ \t]+["<][^">]+[">]/) {
        text = substr($0, RSTART, RLENGTH)
        quoted = text ~ /"$/
        sub(/^[^"<]*["<]/, "", text)
        path = substr(text, 1, length(text) - 1)
        ours = path ~ /^(dialects|passes|compiler|runtime|frontend|models|tools|test)\//
        if (ours && path !~ allowed)
          problem = folder "/ may not include \"" path "\""
        else if (!ours && forbidden != "" && path ~ forbidden)
          problem = folder "/ may not include \"" path "\""
        else if (quoted && (path !~ /\// || path ~ /(^|\/)\.\.?\//))
          problem = "\"" path "\" must be written from the root of the repository"
        else
          next
        print FILENAME ":" FNR ": " problem
        bad = 1
      }
      END { exit bad }' || failed=1
}

# Two folders, and all between them, that include each other. (The operations of optimizers are a folder
# of their own, and part of the dialect: they are generated with all others.)
checkCircles() {
  local folder circles
  for folder in "$@"; do
    [ ! -d "$folder" ] || sources "$folder"
  done |
    xargs -0 --no-run-if-empty awk '
      function room(path) {
        sub(/\/[^\/]*$/, "", path)
        sub(/^dialects\/hydra\/optimizers$/, "dialects/hydra", path)
        return path
      }
      match($0, /^[ \t]*#?[ \t]*include[ \t]+"[^"]+"/) {
        path = substr($0, RSTART, RLENGTH)
        sub(/^[^"]*"/, "", path)
        sub(/"$/, "", path)
        if (path ~ /\// && room(path) != room(FILENAME))
          print room(FILENAME), room(path)
      }' | sort -u >"$edges"
  if ! circles=$(tsort "$edges" 2>&1 >/dev/null); then
    sed -e 's/.*: input contains a loop:$/folders include each other:/' -e 's/^tsort: /  /' <<<"$circles"
    failed=1
  fi
}

failed=0
edges=$(mktemp)
trap 'rm -f "$edges"' EXIT
compiler_libraries='^(mlir|llvm|mlir-c|llvm-c|clang|lld)/'

check runtime         '^runtime/'                                        "$compiler_libraries"
check runtime/support '^runtime/support/'                                "$compiler_libraries"
check runtime/text    '^runtime/(text|support)/'                         "$compiler_libraries"
check dialects        '^(dialects|runtime/support)/'                     ''
check passes          '^(passes|dialects)/'                              ''
check runtime/calls   '^runtime/(calls|plan|support)/'                   ''
check runtime/ranks   '^runtime/((ranks|support)/|report/Units\.h$)'     "$compiler_libraries"
# What connects ranks is known behind runtime/ranks alone.
check runtime/data    '^runtime/(data|text|support)/'                    "$compiler_libraries"
check runtime/run     '^runtime/((run|data|plan|report|text|support)/|ranks/Ranks\.h$)' '^(asio|gloo)[/.]'
check runtime/cpu     '^runtime/((cpu|calls|plan|report|run|support)/|ranks/Communicator\.h$)' '^(asio|gloo)[/.]'
check runtime/cuda    '^runtime/((cuda|calls|plan|report|run|support)/|ranks/(Channel|Ranks|World)\.h$)'   '^(asio|gloo)[/.]'
# A plan says what the model of costs predicts, which reports and profiles ask too.
check compiler        '^((compiler|passes|dialects|runtime/(calls|support))/|runtime/(plan/[^/]*_generated|report/(MeasuredRates|PlanTimes|TargetTexts))\.h$)' ''
check frontend        '^(frontend|dialects|runtime/support)/'            ''
check tools           '^(tools|compiler|passes|dialects|frontend|runtime)/' ''
checkCircles dialects passes compiler runtime frontend tools test
exit $failed
