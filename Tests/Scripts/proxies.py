"""Gateways and balancers: each function writes a configuration into a folder, and gives the command that starts the program."""

from harness import program_path

MODULES = "/usr/lib/apache2/modules"
APACHE = "/usr/sbin/apache2"


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
