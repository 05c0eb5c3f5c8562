<?php
// A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
//   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... php -S 127.0.0.1:3000 login.php     (PHP 8.1 or newer)
//
// Sessions are PHP's own. In strict mode PHP takes no id that it did not make.

declare(strict_types=1);

final class Failure extends Exception {}

/** Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503. */
function ask(string $path, array $members): array
{
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ['Content-Type: application/json', 'X-Api-Key: ' . getenv('VERIFY_KEY')],
        'content' => json_encode((object) $members, JSON_THROW_ON_ERROR),
        'timeout' => 10,
        'ignore_errors' => true,
    ]]);
    $text = @file_get_contents((getenv('VERIFY_URL') ?: 'http://127.0.0.1:8080') . $path, false, $context);
    $status = (int) substr($http_response_header[0] ?? '', 9, 3);
    $answer = json_decode((string) $text, true);
    if ($status === 200 && is_array($answer)) {
        return $answer;
    }
    // `unauthorized_client` is about this server's own key, not about the token.
    if (in_array($status, [400, 401], true) && ($answer['code'] ?? 'unauthorized_client') !== 'unauthorized_client') {
        throw new Failure($answer['code'], $status);
    }
    error_log("limited-login cannot tell: $status $text");
    throw new Failure('try_again', 503);
}

function user(): string
{
    return $_SESSION['user'] ?? throw new Failure('not_logged_in', 401);
}

session_name('__Host-session');
session_start([
    'use_strict_mode' => true, 'cookie_secure' => true, 'cookie_httponly' => true, 'cookie_samesite' => 'Lax',
]);
header('Content-Type: application/json');
try {
    $body = json_decode((string) file_get_contents('php://input', length: 40_960), true);
    $sent = fn (string $name) => is_array($body) ? $body[$name] ?? null : null;
    switch ($_SERVER['REQUEST_METHOD'] . ' ' . parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
        case 'POST /login/begin':
            $_SESSION['nonce'] = ask('/nonces', [])['nonce'];
            $_SESSION['login'] = bin2hex(random_bytes(16));
            $answer = ['login' => $_SESSION['login'], 'nonce' => $_SESSION['nonce']];
            break;
        case 'POST /login':
            if (!isset($_SESSION['login']) || $sent('login') !== $_SESSION['login']) {
                throw new Failure('login_not_begun', 401);
            }
            $verified = ask('/verify', ['id_token' => $sent('id_token'), 'issued_nonce' => true]);
            // The token must have this session's nonce: another login's token has a good nonce too.
            if ($verified['authentication_token']['nonce'] !== $_SESSION['nonce']) {
                throw new Failure('another_login', 401);
            }
            // Begin a session with a new id: others may know the id of the old one.
            session_regenerate_id(true);
            $_SESSION = ['user' => $verified['profile']['user_id']];
            $answer = ['user' => user(), 'name' => $verified['profile']['name'] ?? null];
            break;
        case 'POST /refresh':
            // The user comes from the session, never from the client.
            ask('/verify', ['id_token' => $sent('id_token'), 'subject' => user()]);
            $answer = ['user' => user()];
            break;
        case 'GET /me':
            $answer = ['user' => user()];
            break;
        default:
            throw new Failure('not_found', 404);
    }
} catch (Failure $failure) {
    http_response_code($failure->getCode());
    $answer = ['error' => $failure->getMessage()];
}
echo json_encode($answer);
