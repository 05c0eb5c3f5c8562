#!/usr/bin/env python3
"""Prints the manual page, limited-login.1, made from the program's own help.

usage: manual_page.py > limited-login.1     (LIMITED_LOGIN names the program; without it, it is built)
"""

import json
import re
import sys

import harness

HEAD = r""".\" Made by Tests/Scripts/manual_page.py from the program's own help.
.TH LIMITED\-LOGIN 1 "" "limited\-login {version}" "User Commands"
.ad l
.nh
"""

TAIL = r""".SH ENVIRONMENT
Every setting has a variable beside its option:
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
.B 75
An address is taken, or not there yet.
.TP
.B 78
The configuration cannot be used.
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
    """The text, escaped so that roff prints it literally."""
    text = " ".join(text.replace("…", "...").split()).replace("\\", r"\e").replace("-", r"\-")
    # A long address may break after a slash or a comma.
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


def name(argument):
    return argument.get("preferredName", {}).get("name")


def shown(described):
    """A command's own arguments."""
    return [argument for argument in described.get("arguments", []) if name(argument) not in ("help", "version")]


def setting(argument):
    """The name, value and text that identify a setting's option: commands have other options with the same names."""
    return name(argument), argument["valueName"], argument.get("abstract", "").split(" (default")[0]


def entries(arguments):
    return [line for one in arguments for line in (".TP", option(one), plain(one.get("abstract", "")))]


def command(described, settings, above=()):
    path = [*above, described["commandName"]]
    lines = [f'.SS "{plain(" ".join(path[1:]))}"' if above else ".SH DESCRIPTION"]
    for paragraph in [described.get("abstract"), *(described.get("discussion") or "").split("\n")]:
        if paragraph:
            lines += [".PP", plain(paragraph)]
    arguments = shown(described)
    own = [argument for argument in arguments if setting(argument) not in settings]
    lines += entries(own)
    if len(own) < len(arguments):
        lines += [".PP", "Takes the options of SETTINGS too." if own else "Takes the options of SETTINGS."]
    if not above:
        lines.append(".SH COMMANDS")
    for below in described.get("subcommands", []):
        if below["commandName"] != "help" and below["shouldDisplay"]:
            lines += command(below, settings, path)
    return lines


def page(program):
    described = json.loads(harness.output([program, "--experimental-dump-help"]))["command"]
    version = harness.output([program, "--version"]).strip()
    head = [".SH NAME", rf"limited\-login \- {plain(described['abstract'].rstrip('.'))}", ".SH SYNOPSIS"]
    head += [r".B limited\-login", r"\fIcommand\fR [\fIoptions\fR]"]
    # Every command of the service takes the options of check-config.
    settings = next(shown(below) for below in described["subcommands"] if below["commandName"] == "check-config")
    # The command's own flag is no setting.
    settings = [argument for argument in settings if argument["kind"] == "option"]
    commands = command(described, {setting(argument) for argument in settings})
    lines = [*head, *commands, ".SH SETTINGS", *entries(settings)]
    return HEAD.format(version=plain(version)) + "\n".join(lines) + "\n" + TAIL


if __name__ == "__main__":
    sys.stdout.write(page(harness.build()))
