#!/usr/bin/env bash
# Brings the foreign clients that the tests here need to this machine: Debian's packages and npm's. What is there stays.
set -euo pipefail
cd "$(dirname "$0")"

has_pymongo() { for p in python3 /usr/bin/python3; do "$p" -c 'import pymongo' 2>/dev/null && return 0; done; return 1; }
has_php() { php -r "exit(extension_loaded('mongodb') ? 0 : 1);" 2>/dev/null; }

debs=()
has_pymongo || debs+=(python3-pymongo)
has_php || debs+=(php-cli php-mongodb)
command -v node >/dev/null || debs+=(nodejs)
command -v npm >/dev/null || debs+=(npm)
if [ ${#debs[@]} -gt 0 ]; then
	as_root=()
	if [ "$(id -u)" != 0 ]; then
		sudo -n true 2>/dev/null || {
			echo "install.sh: not root, and no sudo without a password: have somebody run 'apt-get install ${debs[*]}'" >&2
			exit 1
		}
		as_root=(sudo -n)
	fi
	command -v apt-get >/dev/null || {
		echo "install.sh: there is no apt-get: install what Debian calls ${debs[*]}" >&2
		exit 1
	}
	"${as_root[@]}" apt-get update -qq
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${debs[@]}" >/dev/null
fi

# The lock file beside what it installed says whether that is still what is wanted. countries/ is data, not a client.
npm_ci() {
	cmp -s "$1/package-lock.json" "$1/node_modules/.installed" && return
	(cd "$1" && npm ci --omit=optional --no-progress --loglevel=error)
	cp "$1/package-lock.json" "$1/node_modules/.installed"
}
npm_ci node
npm_ci countries
