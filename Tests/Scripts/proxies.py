"""Gateways and balancers: each function writes a configuration into a folder, and gives the command that starts the program."""

import os

from harness import program_path

MODULES = "/usr/lib/apache2/modules"
APACHE = "/usr/sbin/apache2"


def has_module(name):
    """True if Apache is installed with this module."""
    return os.path.exists(APACHE) and os.path.exists(f"{MODULES}/mod_{name}.so")


def guard(kind):
    """Lets only users pass whom the module of this kind knows."""
    return ["<Location />", f"AuthType {kind}", "Require valid-user", "</Location>"]


def apache(folder, modules, *lines):
    text = "\n".join([
        *(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in ["mpm_event", "authz_core", *modules]),
        f"ServerRoot {folder.path}", f"PidFile {folder.path}/pid", f"DefaultRuntimeDir {folder.path}", "ServerName localhost",
        "ErrorLog /dev/stderr", "User www-data", "Group www-data", *lines, "",
    ])
    return [APACHE, "-d", folder.path, "-f", folder.write("httpd.conf", text), "-DFOREGROUND"]


def nginx(folder, http, main="", events=""):
    places = " ".join(f"{kind}_temp_path {folder.path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = f"""daemon off; pid {folder.path}/nginx.pid; error_log stderr; worker_processes 1; {main}
        events {{ {events} }} http {{ access_log off; {places} {http} }}"""
    return [program_path("nginx"), "-p", folder.path, "-e", "stderr", "-c", folder.write("nginx.conf", text)]


def nginx_balancer(folder, port, servers, question, main="", events=""):
    """nginx in front of the upstream `service` of these servers, with more lines for the question."""
    return nginx(folder, f"""
        upstream service {{ {servers} keepalive 64; keepalive_requests 500; }}
        server {{
            listen 127.0.0.1:{port}; keepalive_requests 1000000;
            location / {{ proxy_http_version 1.1; proxy_set_header Connection ""; {question} }}
        }}
    """, f"user root; {main}", events)


def haproxy_balancer(folder, port, *lines):
    lines = "\n".join(lines)
    return haproxy(folder, f"listen service\nbind 127.0.0.1:{port}\n{lines}")


def haproxy(folder, lines, seconds=30):
    timeouts = "\n".join(f"timeout {side} {seconds}s" for side in ("connect", "client", "server"))
    text = f"defaults\nmode http\n{timeouts}\n{lines}\n"
    return [program_path("haproxy"), "-db", "-f", folder.write("haproxy.cfg", text)]


def envoy(folder, port, route, clusters, filters="", program="envoy"):
    """Envoy with these lines of YAML: a route's action, clusters (behind 4 spaces), filters (behind 18)."""
    text = f"""static_resources:
  listeners:
    - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: api
                route_config: {{virtual_hosts: [{{name: a, domains: ["*"], routes: [{{match: {{prefix: /}}, route: {route}}}]}}]}}
                http_filters:
{filters}
                  - name: envoy.filters.http.router
                    typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
{clusters}
"""
    return [program_path(program) or program, "-c", folder.write("envoy.yaml", text), "--use-dynamic-base-id", "--concurrency", "1",
            "-l", "warning"]
