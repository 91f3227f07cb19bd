#!/usr/bin/env bash
# Certificates for TLS between the roles of a cluster, by openssl 3: of an authority of your own, unless you have one.
#   deploy/certificates.sh DIR                      makes the authority DIR/ca.crt, with its key DIR/ca.key, once
#   deploy/certificates.sh DIR NAME NAMES           signs DIR/NAME.crt, with its key DIR/NAME.key, for a year
#   deploy/certificates.sh certs owner-1 DNS:owner-1.example.org,IP:10.0.0.7
# Keep ca.key apart from all machines of the cluster: its holder can make a certificate that an owner lets in.
set -euo pipefail
umask 077
folder=${1:?a folder is missing: certificates.sh DIR [NAME NAMES]}
mkdir -p "$folder"
curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc)
if [ ! -e "$folder/ca.key" ]; then
    openssl req -x509 "${curve[@]}" -days 3650 -subj "/CN=Meridian roles" -addext keyUsage=critical,keyCertSign \
        -keyout "$folder/ca.key" -out "$folder/ca.crt" 2>/dev/null
fi
[ $# -gt 1 ] || exit 0
name=$2 names=${3:?the names are missing, such as DNS:owner-1.example.org,IP:10.0.0.7}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
printf '%s\n' "subjectAltName=$names" basicConstraints=critical,CA:FALSE extendedKeyUsage=serverAuth,clientAuth > "$work/extensions"
openssl req "${curve[@]}" -subj "/CN=$name" -keyout "$work/key" -out "$work/request" 2>/dev/null
openssl x509 -req -in "$work/request" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -days 365 -extfile "$work/extensions" \
    -out "$work/crt" 2>/dev/null
# The key first: a process that runs takes the pair up once both belong together.
mv "$work/key" "$folder/$name.key"
mv "$work/crt" "$folder/$name.crt"
