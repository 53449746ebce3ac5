# Writes INPUT, a model, as a C++ string literal to OUTPUT, in pieces: compilers limit their length.
file(READ "${INPUT}" text)
string(REPLACE "\n\n" "\n)model\"\nR\"model(\n" text "${text}")
file(WRITE "${OUTPUT}" "R\"model(${text})model\"\n")
