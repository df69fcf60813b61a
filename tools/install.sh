#!/bin/sh
# Packages for a virtual environment: by uv where this machine has it, in a tenth of pip's time; by pip otherwise.
# Usage: install.sh ENVIRONMENT ARGUMENT...
set -eu
environment=$1
shift
if command -v uv >/dev/null && uv pip install --quiet --python "$environment" "$@"; then
  exit 0
fi
"$environment/bin/python" -m pip install --quiet --upgrade pip
exec "$environment/bin/python" -m pip install --quiet "$@"
