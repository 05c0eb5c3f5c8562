-- Asks limited-login about the token of a request:
--   http-request lua.limited-login http://127.0.0.1:8080/auth
-- and keeps the answer in the variables txn.auth_status (0 without an answer), txn.auth_challenge, txn.auth_body,
-- txn.auth_retry, and txn.auth_subject for the field X-Auth-Subject; the same for each other field X-Auth-.

local passed = {
    "x-request-id", "authorization", "dpop", "x-forwarded-method", "x-forwarded-proto", "x-forwarded-host",
    "x-forwarded-uri",
}

local function first(headers, name)
    return headers and headers[name] and headers[name][0]
end

core.register_action("limited-login", { "http-req" }, function(txn, url)
    local headers = {}
    local received = txn.http:req_get_headers()
    for _, name in ipairs(passed) do
        -- Pass every field on: the service refuses two.
        local values = {}
        for index = 0, 8 do
            local value = received[name] and received[name][index]
            if value then values[#values + 1] = value end
        end
        if #values > 0 then headers[name] = values end
    end
    -- A token from elsewhere, if the configuration names a place and the client sends no Authorization.
    local token = txn:get_var("txn.auth_token")
    if token and not headers["authorization"] then headers["authorization"] = { "Bearer " .. token } end

    -- HAProxy tries four times, so this is eight seconds in all.
    local answer = core.httpclient():get({ url = url, headers = headers, timeout = 2000 })
    txn:set_var("txn.auth_status", answer and answer.status or 0)
    txn:set_var("txn.auth_retry", first(answer and answer.headers, "retry-after") or "1")
    txn:set_var("txn.auth_body", answer and answer.body or "")
    txn:set_var("txn.auth_challenge", first(answer and answer.headers, "www-authenticate") or "Bearer")
    for name, values in pairs(answer and answer.headers or {}) do
        local claim = name:match("^x%-auth%-(.+)$")
        if claim then txn:set_var("txn.auth_" .. claim:gsub("%-", "_"), values[0]) end
    end
end, 1)
