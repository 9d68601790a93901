#!/usr/bin/env bash
# Installs the locked npm packages when they are missing or the lock file changed. Safe to call before every script.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=node_modules/.fairway-lock
want=$(sha256sum package-lock.json | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$want" ]; then
  echo "fairway: installing npm packages (once per lock file)" >&2
  npm ci --no-audit --no-fund --loglevel=error >&2
  echo "$want" >"$stamp"
fi
