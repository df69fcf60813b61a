#!/bin/sh
# One issue for each newer version: how its tests went. Usage: newer_issue.sh PACKAGE VERSION OUTCOME
set -eu
title="$1 $2: tests end in $3"
[ -n "$(gh issue list --state all --search "in:title \"$title\"" --json number --jq '.[].number')" ] && exit 0
gh issue create --title "$title" --body "$(printf '%s\n\n%s' \
  "The tests ran with $1 $2: $GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID" \
  'CONTRIBUTING.md says where the tested version stands.')"
