#!/bin/sh
# Makes the environment of the programs that Rapt is compared with: sh bench/peers/setup.sh DIR
# (about 6 GB, outside the project). compare.py then takes DIR/bin/python.
set -eu
directory=${1:?expected a folder for the virtual environment}
apt-get install -y -qq libjemalloc2 python3-venv > /dev/null
python3 -m venv "$directory"
"$directory/bin/pip" install -q torch==2.15.0 ctranslate2==4.8.5 safetensors numpy
