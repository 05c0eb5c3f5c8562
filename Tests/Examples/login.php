<?php
// A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
// It needs PHP 8.1 or newer. `php login.php` checks the settings; README.md has the command that starts the server.
// Sessions are PHP's own. In strict mode PHP takes no id that it did not make.
declare(strict_types=1);

/** A session ends so many seconds after its login or its last refresh. */
const LIFETIME = 3_600;
const FLAGS = ['path' => '/', 'secure' => true, 'httponly' => true, 'samesite' => 'Lax'];

final class Failure extends Exception {}

/** Makes a constant of an environment variable. A wrong one is told and ends the start, or the request. */
function setting(string $name, string $pattern, string $meaning): void
{
    if (!preg_match($pattern, (string) getenv($name))) {
        error_log("$name must be $meaning.");
        PHP_SAPI !== 'cli' || exit(1);
        throw new Failure('not_configured', 500);
    }
    define($name, getenv($name));
}

/** Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503. */
function ask(string $path, array $members): array
{
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ['Content-Type: application/json', 'X-Api-Key: ' . VERIFY_KEY],
        'content' => json_encode((object) $members, JSON_THROW_ON_ERROR),
        'timeout' => 10, 'ignore_errors' => true,
    ]]);
    $text = @file_get_contents(VERIFY_URL . $path, false, $context);
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
    return ($_SESSION['until'] ?? 0) > time() ? $_SESSION['user'] : throw new Failure('not_logged_in', 401);
}

function answer(string $route, array $sent): array
{
    switch ($route) {
        case 'POST /login/begin':
            $begun = ['login' => bin2hex(random_bytes(16)), 'nonce' => ask('/nonces', [])['nonce']];
            $_SESSION = $begun + $_SESSION;
            return $begun;
        case 'POST /login':
            if (!isset($_SESSION['login']) || ($sent['login'] ?? null) !== $_SESSION['login']) {
                throw new Failure('login_not_begun', 401);
            }
            // The nonce comes from the session. limited-login compares it with the token's, and takes it once.
            $profile = ask('/verify', ['id_token' => $sent['id_token'] ?? null, 'nonce' => $_SESSION['nonce']])['profile'];
            // Begin a session with a new id: others may know the id of the old one.
            session_regenerate_id(true);
            $_SESSION = ['user' => $profile['user_id'], 'until' => time() + LIFETIME];
            return ['user' => user(), 'name' => $profile['name'] ?? null];
        case 'POST /refresh':
            // The user comes from the session, never from the client.
            ask('/verify', ['id_token' => $sent['id_token'] ?? null, 'subject' => user()]);
            $_SESSION['until'] = time() + LIFETIME;
            setcookie(session_name(), session_id(), ['expires' => time() + LIFETIME] + FLAGS);
            return ['user' => user()];
        case 'POST /logout':
            session_destroy();
            setcookie(session_name(), '', ['expires' => 1] + FLAGS);
            return [];
        case 'GET /me':
            return ['user' => user()];
        default:
            throw new Failure('not_found', 404);
    }
}

try {
    setting('VERIFY_URL', '~^https?://.*[^/]$~D', 'the address of limited-login, such as http://127.0.0.1:8080');
    setting('VERIFY_KEY', '/./', "this server's key at limited-login");
    PHP_SAPI !== 'cli' || exit(0);
    session_name('__Host-session');
    session_set_cookie_params(['lifetime' => LIFETIME] + FLAGS);
    session_start(['use_strict_mode' => true, 'gc_maxlifetime' => LIFETIME]);
    $sent = (array) json_decode((string) file_get_contents('php://input', length: 40_960), true);
    $answer = answer($_SERVER['REQUEST_METHOD'] . ' ' . parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH), $sent);
} catch (Failure $failure) {
    http_response_code($failure->getCode());
    $answer = ['error' => $failure->getMessage()];
}
header('Content-Type: application/json');
echo json_encode((object) $answer);
