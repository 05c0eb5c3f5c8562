<?php // Judges the token on standard input with php-jwt in the folder given, as its README says; `judge.py` has the exit codes.
// The library is not asked about the issuer and the app, so the last line compares them.
spl_autoload_register(fn ($class) => require $GLOBALS['argv'][1] . '/src/' . basename(strtr($class, '\\', '/')) . '.php');
try {
    $keys = Firebase\JWT\JWK::parseKeySet(json_decode(file_get_contents(getenv('JWKS_URL')), true));
    $claims = Firebase\JWT\JWT::decode(stream_get_contents(STDIN), $keys);
} catch (UnexpectedValueException | DomainException | InvalidArgumentException $refusal) {
    exit(1);
}
exit($claims->iss === getenv('ISSUER') && $claims->aud === getenv('APP_ID') ? 0 : 1);
