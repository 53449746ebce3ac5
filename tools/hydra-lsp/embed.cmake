# Writes INPUT, a document of mlir-tblgen, as C++ string literals to OUTPUT: one for each operation, for
# compilers limit their length.
file(READ "${INPUT}" text)
string(REPLACE "\n### `" ")hydra-doc\"\nR\"hydra-doc(\n### `" text "${text}")
file(WRITE "${OUTPUT}" "R\"hydra-doc(${text})hydra-doc\"\n")
