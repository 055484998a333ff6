#!/bin/sh
# Fetches the packages of PACKAGES again and compares them with the files here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
while read -r name version sum; do
  file=$(npm pack --silent "$name@$version")
  got="sha512-$(openssl dgst -sha512 -binary "$file" | openssl base64 -A)"
  [ "$got" = "$sum" ] || { echo "$name@$version has sum $got, not $sum"; exit 1; }
  mkdir "$name" && tar xzf "$file" -C "$name"
done < "$here/PACKAGES"
cmp htmx.org/package/dist/htmx.min.js "$here/htmx.min.js"
cmp htmx.org/package/LICENSE "$here/htmx.LICENSE"
cmp htmx-ext-sse/package/dist/sse.min.js "$here/htmx-sse.min.js"
cmp htmx-ext-sse/package/LICENSE "$here/htmx-sse.LICENSE"
cd "$here" && sha256sum --check --quiet SHA256SUMS
echo "the embedded files are those of the packages"
