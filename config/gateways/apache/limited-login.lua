-- Asks limited-login about a request's token, for Apache's mod_lua.

local http = require "socket.http"

-- To demand permissions of the token: /auth?permissions=email; for routes that need no login: /auth?optional=true
local url = "http://127.0.0.1:8080/auth"

http.TIMEOUT = 8

function check(r)
    -- Remove the client's own X-Auth- fields, with any separator: WSGI and CGI read `_` as `-`, PHP also `.`.
    for name in pairs(r:headers_in_table()) do
        if name:lower():find("^x%Wauth%W") then r.headers_in[name] = nil end
    end
    -- Remove the client's X-Forwarded- fields. DPoP proofs need the request that this gateway got.
    for name in pairs(r:headers_in_table()) do
        if name:lower():find("^x%Wforwarded%W") and not name:lower():find("%Wfor$") then r.headers_in[name] = nil end
    end
    -- Keep only `close` in Connection, or `Upgrade` for a WebSocket: mod_proxy would remove the genuine fields that it names, and
    -- after an upgrade to h2c every further request would pass without a question.
    local connection = r.headers_in["Connection"]
    local socket = (r.headers_in["Upgrade"] or ""):lower() == "websocket"
    if not socket then r.headers_in["Upgrade"] = nil end
    if connection then
        r.headers_in["Connection"] = socket and "Upgrade" or connection:lower():find("%f[%w]close%f[%W]") and "close" or nil
    end

    -- A CORS preflight, which browsers send without credentials (Fetch standard), passes without a question and without a person.
    if r.method == "OPTIONS" and r.headers_in["Origin"] and r.headers_in["Access-Control-Request-Method"] then
        return apache2.DECLINED
    end

    -- Apache joins two fields with a comma, and the result is no token and no proof.
    local credentials = r.headers_in["Authorization"]
    -- A browser cannot set the field on a WebSocket. One of these lines takes the token from elsewhere, for the question only:
    -- a cookie: other sites' pages send it too (CSRF), so set it SameSite and check Origin in the application;
    --credentials = credentials or "Bearer " .. (r:getcookie("id_token") or "")
    -- a subprotocol, `new WebSocket(url, ["bearer", token])`: the application must answer with the protocol bearer;
    --credentials = credentials or "Bearer " .. ((r.headers_in["Sec-WebSocket-Protocol"] or ""):match("^bearer, ?([%w._-]+)$") or "")
    -- the query, the worst of the three: it stands in logs, histories and Referer fields.
    --credentials = credentials or "Bearer " .. (r:parseargs().id_token or "")

    local _, status, headers = http.request({
        url = url,
        method = "GET",
        headers = {
            ["authorization"] = credentials,
            ["dpop"] = r.headers_in["DPoP"],
            ["x-forwarded-method"] = r.method,
            ["x-forwarded-proto"] = r.is_https and "https" or "http",
            ["x-forwarded-host"] = r.headers_in["Host"],
            -- Without the scheme and host if the target is in absolute form.
            ["x-forwarded-uri"] = r.unparsed_uri:gsub("^%a[%w+.-]*://[^/?#]*", ""),
        },
        redirect = false,
        sink = function() return 1 end,
    })
    if status == 200 then
        for name, value in pairs(headers) do
            if name:find("^x%-auth%-") then r.headers_in[name] = value end
        end
        return apache2.DECLINED
    end
    if status == 401 or status == 403 then
        r.err_headers_out["WWW-Authenticate"] = headers["www-authenticate"]
        return status
    end
    -- Any other answer but 200 is an outage.
    r.err_headers_out["Retry-After"] = type(headers) == "table" and headers["retry-after"] or "1"
    return 503
end
