# Adds up the elements of every `hydra.param @name [dims]` in bound, unrolled text and compares the
# sum with -v want=N, or with -v millions=N.N after rounding to as many digits.
/hydra\.param @/ {
  match($0, / \[[0-9, ]*\]/)
  rank = split(substr($0, RSTART + 2, RLENGTH - 3), dims, ", ")
  elements = 1
  for (i = 1; i <= rank; ++i)
    elements *= dims[i]
  sum += elements
}
END {
  found = millions ? sprintf("%.1f", sum / 1e6) : sprintf("%.0f", sum)
  expected = millions ? millions : want
  if (found != expected) {
    printf "found %s parameters, expected %s\n", found, expected > "/dev/stderr"
    exit 1
  }
}
