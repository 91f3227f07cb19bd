#!/usr/bin/env bash
# Packages of this version: scripts/package.sh FOLDER [PART...], where a PART is program, tarball, deb, image, wheels, sbom or sums; all by default.
# The program is linked against the glibc of Debian 11, so that it runs there and on what is newer. Times of files are those of the commit.
# MERIDIAN=PATH packages that program in place of a new build; LEVEL=1 compresses fast.
set -euo pipefail
out=$(realpath -m "$1")
shift
cd "$(dirname "$0")/.."
source scripts/python_tools.sh

parts=("$@")
[[ $# -gt 0 ]] || parts=(program tarball deb image wheels sbom sums)
for part in "${parts[@]}"; do
    [[ " program tarball deb image wheels sbom sums " == *" $part "* ]] || {
        echo "part $part: expected program, tarball, deb, image, wheels, sbom or sums" >&2
        exit 2
    }
done

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
machine=$(uname -m)
triple=$machine-unknown-linux-gnu
# Debian 11 and Ubuntu 20.04.
glibc=2.31
level=${LEVEL:-9}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null || date +%s)
export SOURCE_DATE_EPOCH
meridian=${MERIDIAN:-$target/package/$triple/release/meridian}
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$out"

# The same archive of the same files, whenever it is made.
archive() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$1" -cf - "${@:3}" | gzip -n"$level" > "$2"; }

program() {
    [[ -z ${MERIDIAN:-} ]] || return 0
    python_tools package cargo-zigbuild==0.24.1 ziglang==0.17.1
    make --no-print-directory web
    rustup target add "$triple" > /dev/null 2>&1 || true
    PATH=$tools/bin:$PATH cargo zigbuild --release --locked --bin meridian --target "$triple.$glibc" --target-dir "$target/package"
}

# What every package has, made once from the program itself.
common() {
    [[ ! -d $work/common ]] || return 0
    mkdir -p "$work/common/man1" "$work/common/completions"
    install -m 0755 "$meridian" "$work/common/meridian"
    strip "$work/common/meridian"
    "$meridian" manual "$work/common/man1" > /dev/null
    local shell
    for shell in bash zsh fish; do "$meridian" completions "$shell" > "$work/common/completions/meridian.$shell"; done
}

tarball() {
    common
    local name=meridian-$version-$machine-linux
    local to=$work/$name
    mkdir -p "$to/bin" "$to/share/man"
    cp "$work/common/meridian" "$to/bin/"
    cp -r "$work/common/man1" "$to/share/man/"
    cp -r "$work/common/completions" "$to/share/"
    cp -r deploy/systemd deploy/grafana "$to/share/"
    cp README.md CHANGELOG.md LICENSE "$to/"
    archive "$work" "$out/$name.tar.gz" "$name"
}

deb() {
    common
    local to=$work/deb architecture
    architecture=$(dpkg --print-architecture)
    mkdir -p "$to/DEBIAN" "$to/usr/share/man" "$to/usr/share/doc/meridian"
    install -D -m 0755 "$work/common/meridian" "$to/usr/bin/meridian"
    cp -r "$work/common/man1" "$to/usr/share/man/"
    gzip -n9 "$to"/usr/share/man/man1/*
    install -D -m 0644 "$work/common/completions/meridian.bash" "$to/usr/share/bash-completion/completions/meridian"
    install -D -m 0644 "$work/common/completions/meridian.zsh" "$to/usr/share/zsh/vendor-completions/_meridian"
    install -D -m 0644 "$work/common/completions/meridian.fish" "$to/usr/share/fish/vendor_completions.d/meridian.fish"
    local unit
    for unit in deploy/systemd/*.service; do
        install -D -m 0644 "$unit" "$to/lib/systemd/system/$(basename "$unit")"
        sed -i 's#/usr/local/bin/meridian#/usr/bin/meridian#' "$to/lib/systemd/system/$(basename "$unit")"
    done
    install -D -m 0644 -t "$to/etc/meridian" deploy/systemd/meridian.toml deploy/systemd/cluster.toml deploy/systemd/cluster.env
    install -m 0644 LICENSE "$to/usr/share/doc/meridian/copyright"
    gzip -n9c CHANGELOG.md > "$to/usr/share/doc/meridian/changelog.gz"
    install -m 0755 deploy/package/postinst deploy/package/prerm deploy/package/postrm "$to/DEBIAN/"
    (cd "$to" && find etc -type f -printf '/%p\n' | sort) > "$to/DEBIAN/conffiles"
    sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@GLIBC@/$glibc/" \
        -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$to" | cut -f1)/" deploy/package/control > "$to/DEBIAN/control"
    find "$to" -type d -exec chmod 0755 {} +
    dpkg-deb --root-owner-group -Zxz "-z$level" --build "$to" "$out/meridian_${version}_$architecture.deb" > /dev/null
}

# The files of the image: the program, the C library that it needs, the authorities for https://, settings and a user.
# What becomes of them is in deploy/container/Containerfile.
image() {
    scripts/need.sh buildah=buildah
    common
    local root=$work/image/root library
    mkdir -p "$root/var/lib" "$work/image/state"
    mkdir -m 0700 "$work/image/state/meridian"
    install -D -m 0755 "$work/common/meridian" "$root/usr/bin/meridian"
    ldd "$meridian" | grep -o '/[^ ]*' | sort -u | while read -r library; do install -D -m 0755 "$library" "$root$library"; done
    install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    install -D -m 0644 deploy/container/meridian.toml "$root/etc/meridian/meridian.toml"
    install -D -m 0644 LICENSE "$root/usr/share/doc/meridian/copyright"
    echo 'meridian:x:10001:10001::/var/lib/meridian:/sbin/nologin' > "$root/etc/passwd"
    echo 'meridian:x:10001:' > "$root/etc/group"
    # Docker's format: the OCI's has no health check. Podman, Docker and Kubernetes take both.
    local file=$out/meridian-$version-$machine-image.tar
    rm -f "$file"
    buildah --root "$work/containers" --runroot "$work/containers-run" --storage-driver vfs build --quiet --format docker \
        --timestamp "$SOURCE_DATE_EPOCH" --build-arg "VERSION=$version" --file deploy/container/Containerfile \
        --tag "docker-archive:$file:meridian:$version" "$work/image" > /dev/null
}

wheels() {
    scripts/python_wheel.sh "$work/wheels" > /dev/null
    cp "$work"/wheels/*.whl "$out/"
    python_tools maturin maturin==1.16.0 ziglang==0.17.1
    "$tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" clients/python
}

# CycloneDX: the crates in the program, and the packages in its pages.
sbom() {
    local tools=$target/tools
    if [[ ! -x $tools/bin/cargo-cyclonedx ]]; then
        echo "installing cargo-cyclonedx into $tools (some minutes, once)"
        cargo install cargo-cyclonedx --version 0.5.9 --locked --quiet --root "$tools"
    fi
    PATH=$tools/bin:$PATH cargo cyclonedx --quiet --format json --target "$triple" --manifest-path crates/cli/Cargo.toml --override-filename sbom-meridian
    mv crates/cli/sbom-meridian.json "$out/meridian-$version.cdx.json"
    find crates bench fuzz -name sbom-meridian.json -delete
    npm --prefix web sbom --sbom-format cyclonedx --package-lock-only > "$out/meridian-$version-pages.cdx.json"
}

sums() { (cd "$out" && rm -f SHA256SUMS && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS); }

for part in "${parts[@]}"; do
    echo "$part ..."
    "$part"
done
ls -l "$out"
