// Judges the token on standard input with golang-jwt 4, as its documentation says; `judge.py` has the exit codes. The library
// reads no JWK Set, and checks the app and the issuer of its claims only where it is told to.
package main

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"os"

	"github.com/golang-jwt/jwt"
)

func published(token *jwt.Token) (interface{}, error) {
	var set struct{ Keys []struct{ Kid, N string } }
	answer, err := http.Get(os.Getenv("JWKS_URL"))
	if err != nil {
		return nil, err
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return nil, err
	}
	for _, key := range set.Keys {
		if n, err := base64.RawURLEncoding.DecodeString(key.N); err == nil && key.Kid == token.Header["kid"] {
			return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537}, nil
		}
	}
	return nil, errors.New("no such key")
}

func main() {
	token, _ := io.ReadAll(os.Stdin)
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}))
	claims := jwt.MapClaims{}
	_, err := parser.ParseWithClaims(string(token), claims, published)
	if err != nil || !claims.VerifyAudience(os.Getenv("APP_ID"), true) || !claims.VerifyIssuer(os.Getenv("ISSUER"), true) {
		os.Exit(1)
	}
}
