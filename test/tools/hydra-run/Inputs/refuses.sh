#!/usr/bin/env bash
# refuses.sh COMMAND ARGUMENT...: passes when the command ends in time with status 1, after exactly
# one line on standard error and nothing on standard output; that line is printed.
error=$(timeout 60 "$@" 2>&1 >/dev/null)
status=$?
if [ $status -ne 1 ] || [ -z "$error" ] || [ "$(wc -l <<<"$error")" -ne 1 ]; then
  echo "status $status; expected 1 and one line: $error"
  exit 1
fi
echo "$error"
