#!/usr/bin/env python3
"""Makes config/man/limited-login.1 from what the program says about itself.

usage: manual_page.py [--write]     (without it: fails where the page is not what the program says)
"""

import json
import re
import subprocess
import sys

import live

PAGE = live.ROOT / "config" / "man" / "limited-login.1"

HEAD = r""".\" Made by Tests/Scripts/manual_page.py from the program's own help; do not edit.
.TH LIMITED\-LOGIN 1 "" "limited\-login {version}" "User Commands"
.ad l
.nh
"""

TAIL = r""".SH ENVIRONMENT
Every option of
.B serve
has a variable beside it:
.B \-\-app\-ids
is
.BR LIMITED_LOGIN_APP_IDS .
.B LIMITED_LOGIN_CONFIG
names the configuration file,
.B NO_COLOR
forbids colours,
.BR HTTPS_PROXY " and " NO_PROXY
say how the issuer's keys are fetched and Graph is asked.
.SH "EXIT STATUS"
.TP
.B 0
Done; of
.BR verify :
the token is accepted.
.TP
.B 1
The token is refused; Graph refuses; the service is not healthy.
.TP
.B 2
.B verify
was called wrongly.
.TP
.B 3
The issuer's keys are not to be had; Graph cannot be asked now.
.TP
.B 64
Another command was called wrongly.
.TP
.B 78
The configuration cannot be used, or a port or socket is taken.
.SH EXAMPLES
A demonstration that needs no network and no Facebook app:
.PP
.RS 4
limited\-login demo
.RE
.PP
Why was this token refused?
.PP
.RS 4
pbpaste | LIMITED_LOGIN_APP_IDS=123456789012345 limited\-login verify \- \-\-nonce n\-0S6_WzA2Mj
.RE
"""


def plain(text):
    """Text as roff reads it literally."""
    text = " ".join(text.replace("…", "...").split()).replace("\\", r"\e").replace("-", r"\-")
    # Long addresses may break behind a stroke or a comma.
    words = [re.sub(r"([/,])", r"\1\\:", word) if len(word) > 40 else word for word in text.split(" ")]
    return re.sub(r"^([.'])", r"\\&\1", " ".join(words))


def option(argument):
    if argument["kind"] == "positional":
        return rf"\fI{plain(argument['valueName'])}\fR"
    names = []
    for name in argument["names"]:
        dashes = "-" if name["kind"] == "short" else "--"
        names.append(rf"\fB{plain(dashes + name['name'])}\fR")
    text = ", ".join(names)
    return text + (rf" \fI{plain(argument['valueName'])}\fR" if argument["kind"] == "option" else "")


def command(described, above=()):
    path = [*above, described["commandName"]]
    lines = [f'.SS "{plain(" ".join(path[1:]))}"' if above else ".SH DESCRIPTION"]
    for paragraph in [described.get("abstract"), *(described.get("discussion") or "").split("\n")]:
        if paragraph:
            lines += [".PP", plain(paragraph)]
    for argument in described.get("arguments", []):
        if argument["shouldDisplay"] and argument.get("preferredName", {}).get("name") not in ("help", "version"):
            lines += [".TP", option(argument), plain(argument.get("abstract", ""))]
    if not above:
        lines.append(".SH COMMANDS")
    for below in described.get("subcommands", []):
        if below["commandName"] != "help" and below["shouldDisplay"]:
            lines += command(below, path)
    return lines


def page(program):
    output = subprocess.run([program, "--experimental-dump-help"], capture_output=True, text=True, check=True).stdout
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    described = json.loads(output)["command"]
    name = [".SH NAME", rf"limited\-login \- {plain(described['abstract'].rstrip('.'))}", ".SH SYNOPSIS"]
    name += [r".B limited\-login", r"\fIcommand\fR [\fIoptions\fR]"]
    return HEAD.format(version=plain(version)) + "\n".join([*name, *command(described)]) + "\n" + TAIL


def main():
    text = page(live.build())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() != text:
        print(f"{PAGE} is not what the program says: run Tests/Scripts/manual_page.py --write")
        return 1
    print(f"{PAGE.name}: {len(text.splitlines())} lines, as the program says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
