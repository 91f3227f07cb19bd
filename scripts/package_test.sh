#!/usr/bin/env bash
# The packages, as their users have them. scripts/package_test.sh packages the program that `make test` built, and tries
# archive and Debian package. With --all (`make test-package`) it makes every package as `make package` does. It installs the
# Debian package on Debian 11, and the wheels. It starts the image as a container (tests/image.py).
# PACKAGES=FOLDER takes packages that were made.
set -euo pipefail
all=${1:-}
source "$(dirname "$0")/program.sh"
out=${PACKAGES:-$folder/packages}

if [[ -n ${PACKAGES:-} ]]; then echo "package: those in $out"
elif [[ $all == --all ]]; then scripts/package.sh "$out"
else MERIDIAN=$meridian LEVEL=1 scripts/package.sh "$out" tarball deb sums > /dev/null; fi
cd "$folder"

say() { echo "package: $*"; }
fail() { echo "package: $*" >&2; exit 1; }

# answers COMMAND...: a program that loads a file, is served, says that it is ready, and answers; it runs through COMMAND.
answers() {
    local data=$1
    shift
    printf 'lon,lat,time,size\n4.8,45.7,2026-01-01T00:00:00Z,1\n5.0,46.0,2026-01-02T00:00:00Z,2\n' > "$folder/spots.csv"
    "$@" load spots - --format csv --data "$data" --quiet < "$folder/spots.csv"
    [[ $("$@" query spots --near 4.8,45.7,1000 --data "$data" --format ndjson | wc -l) -eq 1 ]] || fail "$*: a query of one event"
}

# Everything in the folder has its sum.
(cd "$out" && sha256sum --quiet --check SHA256SUMS)
[[ $(wc -l < "$out/SHA256SUMS") -eq $(find "$out" -type f ! -name SHA256SUMS | wc -l) ]] || fail "SHA256SUMS leaves a file out"

# The archive.
tar -xzf "$out"/meridian-*-linux.tar.gz
root=$(echo "$folder"/meridian-*-linux)
answers "$folder/one" "$root/bin/meridian"
"$root/bin/meridian" serve --listen 127.0.0.1:0 --data "$folder/one" > "$folder/said" &
server=$!
for _ in $(seq 100); do
    url=$(grep -o 'http://127.0.0.1:[0-9]*' "$folder/said" | head -1 || true)
    [[ -z $url ]] || break
    sleep 0.1
done
"$root/bin/meridian" health --ready --url "$url"
[[ -f $root/share/man/man1/meridian-load.1 && -f $root/share/completions/meridian.bash && -f $root/share/systemd/meridian.service ]] || fail "the archive lacks a file"
kill "$server"; wait "$server" || true; server=
say "the archive answers"

# The Debian package: its files, and scripts that a shell can read.
deb=$(echo "$out"/meridian_*.deb)
[[ $(dpkg-deb --field "$deb" Depends) == *"libc6 (>= 2.31)"* ]] || fail "the Debian package does not name its C library"
dpkg-deb --extract "$deb" "$folder/deb"
dpkg-deb --control "$deb" "$folder/control"
for script in postinst prerm postrm; do sh -n "$folder/control/$script"; done
while read -r file; do [[ -f $folder/deb$file ]] || fail "conffile $file is not there"; done < "$folder/control/conffiles"
if grep -r /usr/local "$folder/deb/lib/systemd"; then fail "a unit names another program"; fi
answers "$folder/two" "$folder/deb/usr/bin/meridian"
say "the Debian package answers"
[[ $all == --all ]] || exit 0

# On Debian 11: installed, used, upgraded, removed; the events stay.
needs=$(readelf --version-info "$folder/deb/usr/bin/meridian" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
[[ $(printf '%s\nGLIBC_2.31\n' "$needs" | sort -V | tail -1) == GLIBC_2.31 ]] || fail "the program needs $needs"
"$OLDPWD/scripts/need.sh" mmdebstrap=mmdebstrap
debian=$target/tools/bullseye.tar
[[ $debian == /* ]] || debian=$OLDPWD/$debian
[[ -f $debian ]] || mmdebstrap --quiet --variant=minbase --include=adduser bullseye "$debian" http://deb.debian.org/debian
mkdir "$folder/bullseye"
tar -C "$folder/bullseye" -xf "$debian" --exclude=./dev
mkdir -p "$folder/bullseye/dev" && mknod -m 666 "$folder/bullseye/dev/null" c 1 3 && mknod -m 444 "$folder/bullseye/dev/urandom" c 1 9
cp "$deb" "$folder/bullseye/meridian.deb"
in_debian() { chroot "$folder/bullseye" env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
in_debian dpkg --install /meridian.deb > "$folder/installed" || { cat "$folder/installed"; fail "the package does not install on Debian 11"; }
answers /var/lib/meridian/data in_debian meridian
in_debian meridian serve --config /etc/meridian/meridian.toml --show-config > /dev/null
echo '# changed' >> "$folder/bullseye/etc/meridian/meridian.toml"
in_debian dpkg --install /meridian.deb > /dev/null
grep -q '# changed' "$folder/bullseye/etc/meridian/meridian.toml" || fail "an upgrade replaced the settings"
in_debian id meridian > /dev/null
in_debian dpkg --purge meridian > /dev/null
[[ ! -e $folder/bullseye/usr/bin/meridian && -d $folder/bullseye/var/lib/meridian/data ]] || fail "a purge leaves the program, or takes the events"
say "installed, upgraded and removed on Debian 11"

# The image, as a container's engine starts it.
"$OLDPWD/scripts/need.sh" ip=iproute2
python3 "$OLDPWD/tests/image.py" "$out"/meridian-*-image.tar

# The wheels.
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$out"/*.whl
"$folder/venv/bin/python" - "$folder/db" << 'END'
import sys
import meridian
with meridian.open(sys.argv[1]) as db:
    spots = db.create("spots", "time:Date,*place:Point:srid=4326")
    spots.append([{"time": "2026-01-31T12:00:00Z", "lon": 4.5, "lat": 52.0}])
    assert spots.query(near=(4.5, 52.0, 10)).to_arrow().num_rows == 1
END
say "the wheels answer"

python3 - "$out"/*.cdx.json << 'END'
import json, sys
for path in sys.argv[1:]:
    found = json.load(open(path))
    assert found["bomFormat"] == "CycloneDX" and len(found["components"]) > 10, path
END
say "both lists of components read"
