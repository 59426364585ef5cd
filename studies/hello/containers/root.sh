#!/bin/sh
# Makes root/NAME, the files of an image: a program, the libraries that it loads, and this study's servers.
#
# ./root.sh NAME PROGRAM
set -eu
root=root/$1 program=$2
rm -rf "$root"
mkdir -p "$root/bin" "$root/tmp" "$root/hello"
cp -L "$program" "$root/bin/$1"
cp -r ../node ../bun ../shared "$root/hello"
# Each library, and the loader itself, at the path at which the program looks for it. A program without libraries has none.
ldd "$program" 2> /dev/null | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
