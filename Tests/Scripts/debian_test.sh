#!/bin/bash
# Tests the Debian package in a clean root: install, start, upgrade, remove, purge, as Debian's policy asks (chapters 6 and 10.7).
#
# usage: debian_test.sh PACKAGE.deb [ROOT]     (as root; ROOT is an unpacked base; by default debootstrap makes one)
set -euo pipefail
package=$(readlink -f "$1")
work=$(mktemp -d)
service=
trap '[ -z "$service" ] || kill "$service" 2>/dev/null; umount "$root/proc" 2>/dev/null || true; rm -rf "$work"' EXIT
root=${2:-$work/root}
[ -d "$root/etc" ] || debootstrap --variant=minbase --include=adduser bookworm "$root" >"$work/debootstrap.log" 2>&1 ||
  { tail "$work/debootstrap.log"; exit 1; }

# The program reads its arguments from /proc.
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"

fail() { echo "FAILED: $*"; exit 1; }
in_root() { chroot "$root" /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
# shellcheck disable=SC2016
state() { in_root dpkg-query --show --showformat='${Status}' limited-login 2>/dev/null; }

lintian --fail-on error "$package" || fail 'lintian has errors'

# Make a next version: the same package with another number.
dpkg-deb --raw-extract "$package" "$work/next"
sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
dpkg-deb --root-owner-group --build "$work/next" "$root/next.deb" >/dev/null
cp "$package" "$root/first.deb"

in_root dpkg --install /first.deb >"$work/log" 2>&1 || { cat "$work/log"; fail 'it does not install'; }
[ "$(state)" = 'install ok installed' ] || fail "after the install it is $(state)"
in_root getent passwd limited-login | grep -q ':/var/lib/limited-login:/usr/sbin/nologin' || fail 'there is no user'
[ "$(in_root stat -c '%U %a' /var/lib/limited-login)" = 'limited-login 750' ] || fail 'its folder is not its own'
[ "$(in_root stat -c '%U %a' /etc/limited-login/limited-login.json)" = 'root 644' ] || fail 'its configuration is not root'\''s'
# An optimised program once gave the memory of a key back before it was read.
in_root limited-login signing-key new --out /rsa.pem >/dev/null
in_root env LIMITED_LOGIN_SIGNING_KEYS_FILE=/rsa.pem limited-login signing-key public >"$work/log" 2>&1 ||
  { cat "$work/log"; fail 'it does not read its own RSA key'; }
unit=$root/lib/systemd/system/limited-login.service
grep -qx 'User=limited-login' "$unit" || fail 'the unit names no user'
sed 's|/usr/bin/limited-login|/bin/true|' "$unit" >"$work/limited-login.service"
said=$(systemd-analyze verify "$work/limited-login.service" 2>&1 | grep -v 'User limited-login') || true
[ -z "$said" ] || fail "systemd says of the unit: $said"

# Run the unit's command as its user. It reports the missing app id of the example configuration, and serves with an id.
command=$(sed -n 's/^ExecStart=//p' "$unit")
as_user() { in_root setpriv --reuid=limited-login --regid=limited-login --clear-groups "$@"; }
status=0
# shellcheck disable=SC2086
as_user $command >"$work/log" 2>&1 || status=$?
{ [ "$status" = 78 ] && grep -q 'no app id' "$work/log"; } || { cat "$work/log"; fail "without an app it ends with $status"; }
# Run the block of Operation.md as root, without systemd; its credentials become the user's, as by LoadCredential=.
ln -s /bin/true "$root/usr/bin/systemctl"
cp "$package" "$root/limited-login_first.deb"
python3 "$(dirname "$0")/readme_command.py" debian | sed 's/sudo //' >"$root/block"
in_root sh -ec 'cd / && . /block' >"$work/block" 2>&1 || { cat "$work/block"; fail 'the block of Operation.md does not run'; }
key=$(sed -n 's/^key:  //p' "$work/block")
credentials=/run/credentials/limited-login.service
in_root install -d -o limited-login -m 500 "$credentials"
while IFS=: read -r name file; do
  [ "$(in_root stat -c '%U %a' "$file")" = 'root 600' ] || fail "$file is not root's alone"
  in_root install -o limited-login -m 400 "$file" "$credentials/$name"
done < <(sed -n 's/^LoadCredential=//p' "$unit")
environment=$(sed -n 's/^Environment=//p' "$unit" | sed "s|%d|$credentials|g")
sed -i 's/"listen": null/"listen": "127.0.0.1:18480"/; s/127.0.0.1:8081/127.0.0.1:18481/' "$root/etc/limited-login/limited-login.json"
# Do not use the functions here: the background process must be the program itself, so that the signal reaches it.
# shellcheck disable=SC2086
chroot "$root" /usr/bin/env $environment /usr/bin/setpriv --reuid=limited-login --regid=limited-login --clear-groups $command >"$work/log" 2>&1 &
service=$!
for _ in $(seq 100); do curl -sf http://127.0.0.1:18480/livez >/dev/null && break; sleep 0.1; done
curl -sf http://127.0.0.1:18480/livez >/dev/null || { cat "$work/log"; fail 'it does not serve'; }
[ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -H "X-Api-Key: $key" http://127.0.0.1:18480/nonces)" = 200 ] || fail 'it issues no nonce'
! grep 'a setting may be a mistake' "$work/log" || fail 'the start warns'
kill "$service"
wait "$service" || fail 'it does not stop with exit code 0'
service=

# An upgrade and a removal keep the administrator's configuration; a purge deletes it.
in_root dpkg --install --force-confdef /next.deb >"$work/log" 2>&1 || { cat "$work/log"; fail 'it does not upgrade'; }
grep -q 123456789012345 "$root/etc/limited-login/limited-login.json" || fail 'the upgrade lost the configuration'
in_root dpkg --remove limited-login >"$work/log" 2>&1 || { cat "$work/log"; fail 'it does not go'; }
[ "$(state)" = 'deinstall ok config-files' ] || fail "after the removal it is $(state)"
[ ! -e "$root/usr/bin/limited-login" ] || fail 'the removal leaves the program'
[ -e "$root/etc/limited-login/limited-login.json" ] || fail 'the removal takes the configuration'
in_root dpkg --install /first.deb >"$work/log" 2>&1 || { cat "$work/log"; fail 'it does not install again'; }
rm "$root/etc/limited-login/nonce-secret" "$root/etc/limited-login/client-keys" "$root/usr/bin/systemctl"
in_root dpkg --purge limited-login >"$work/log" 2>&1 || { cat "$work/log"; fail 'it cannot be purged'; }
{ [ ! -e "$root/etc/limited-login" ] && [ ! -e "$root/var/lib/limited-login" ]; } || fail 'the purge leaves files'
left=$(cd "$root" && find usr lib etc var -name '*limited-login*' ! -path 'var/lib/dpkg/*' ! -path 'var/log/*')
[ -z "$left" ] || fail "the purge leaves $left"
rm -f "$root"/*.deb "$root/block"
echo "debian package: installed, started by its user, upgraded, removed, purged"
