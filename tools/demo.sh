#!/usr/bin/env bash
# A small real model on sixty bundled rows in five languages, with ceiling, baselines, a toy judge, report and pages.
# Usage: tools/demo.sh BIN [OUT]: BIN is an environment's bin folder with medtasks[demo]; it needs no GPU.
set -euo pipefail
BIN=$1
OUT=${2:-runs/demo}
NAME=SmolLM2-135M-Instruct-from-Q4_1
MODEL=models/$NAME
PORT=${DEMO_PORT:-8719}
# choices (en, zh), a label (en, ru), a number (fr), an extraction (en), and one that judges rate (en)
TASKS=medhelm_medmcqa,mlb_maexam,bridge_mednli,bridge_rumednli,bridge_clister,clinicbench_bc5_disease,medhelm_medication_qa
ASK=(--data sample --limit 8 --tasks "$TASKS")
# two threads of one small model wait for each other more than they help
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

step() { printf '\n== %s ==\n' "$*"; }

step "$NAME answers; the rows are invented, and no score here is a result"
"$BIN/medtasks" run "${ASK[@]}" --config demo --model_args "pretrained=$MODEL,dtype=float32" --device cpu \
  --batch_size 8 --gen_kwargs max_gen_toks=32 --output_path "$OUT/$NAME" || {
  [ ! -d "$MODEL" ] || exit 1
  echo "the model cannot be had here: stand-ins in its place"
  exec "${MAKE:-make}" --no-print-directory stand-ins
}

step "one of its answers, read and scored"
"$BIN/medtasks" view "$OUT/$NAME" medhelm_medmcqa 0

for stand_in in oracle random-label; do
  step "$stand_in: $([ $stand_in = oracle ] && echo the ceiling || echo a baseline)"
  "$BIN/medtasks" run "${ASK[@]}" --model $stand_in --output_path "$OUT/$stand_in"
done

# Tried: one axis in place of three, the form of a verdict to copy, longer replies. A model of this size repeats the
# answer or the code all the same, and a server of transformers holds no reply to a schema, as vLLM's does.
step "a toy jury: the model is asked to rate its own answers; it is too small to write a verdict, so expect gaps, which never become a score"
mkdir -p "$OUT/hub"  # without a cache of the hub, the server fails when it is asked for its models
HF_HUB_CACHE="$OUT/hub" "$BIN/transformers" serve "$MODEL" --host 127.0.0.1 --port "$PORT" --device cpu --dtype float32 >"$OUT/serve.log" 2>&1 &
SERVER=$!
trap 'kill $SERVER 2>/dev/null || true' EXIT
cat >"$OUT/toy_jury.yaml" <<YAML
# The model under test as its own judge: it shows how judging works, and measures nothing.
judges:
  - name: toy-judge-$NAME
    model: $MODEL
    base_url: http://127.0.0.1:$PORT/v1
    max_tokens: 64
    max_concurrent: 1
YAML
for second in $(seq 60); do
  [ $((second % 5)) -ne 0 ] || echo "the judge's server loads the model ($second s)"
  "$BIN/python" -c "import socket; socket.create_connection(('127.0.0.1', $PORT), 1)" 2>/dev/null && break
  sleep 1
done
# exit code 1: judgements are missing
"$BIN/medtasks" judge "$OUT/$NAME" --jury "$OUT/toy_jury.yaml" --prompts own || {
  [ $? -eq 1 ]
  echo "as expected of the toy: a real judge writes JSON, and vLLM's server holds it to the form (docs/judges.md)"
}
kill $SERVER 2>/dev/null || true

step "report and pages"
"$BIN/medtasks" report "$OUT/$NAME" "$OUT/oracle" "$OUT/random-label" --published none -o "$OUT/report" >"$OUT/report.txt"
sed -e '/^by /,$d' -e '24q' "$OUT/report.txt"
printf '\nall of the report: %s\nopen in a browser, answers too:\n  %s\n' "$OUT/report.txt" "$OUT/report/report.html"
