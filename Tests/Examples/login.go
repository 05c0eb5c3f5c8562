// A login server. The app begins a login here, logs in at Facebook with the nonce that it gets, and sends the id token.
//
//	VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... SESSION_SECRET=... PORT=3000 go run login.go
//
// Sessions are those of github.com/gorilla/sessions: the cookie holds the session, signed and encrypted, and comes anew with
// each change. A client may send an old cookie again, so it is limited-login that takes each nonce once.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gorilla/sessions"
)

const (
	bodyLimitBytes = 40_960
	sessionSeconds = 3_600
)

// failure is the status and the code that a client gets.
type failure struct {
	status int
	code   string
}

func (f failure) Error() string { return f.code }

type answer struct {
	AuthenticationToken struct {
		Nonce string `json:"nonce"`
	} `json:"authentication_token"`
	Profile struct {
		UserID string `json:"user_id"`
		Name   string `json:"name"`
	} `json:"profile"`
	IssuedNonce string `json:"nonce"`
	Code        string `json:"code"`
}

var client = &http.Client{Timeout: 10 * time.Second}

// ask asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503.
func ask(path string, members map[string]any) (*answer, error) {
	said := &answer{}
	status, err := post(path, members, said)
	if err == nil && status == http.StatusOK {
		return said, nil
	}
	// `unauthorized_client` is about this server's own key: no fault of the person's.
	if err == nil && (status == 400 || status == 401) && said.Code != "" && said.Code != "unauthorized_client" {
		return nil, failure{status, said.Code}
	}
	log.Println("limited-login cannot tell:", status, said.Code, err)
	return nil, failure{http.StatusServiceUnavailable, "try_again"}
}

func post(path string, members map[string]any, said *answer) (int, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return 0, err
	}
	question, err := http.NewRequest("POST", setting("VERIFY_URL", "http://127.0.0.1:8080")+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	question.Header.Set("Content-Type", "application/json")
	question.Header.Set("X-Api-Key", os.Getenv("VERIFY_KEY"))
	response, err := client.Do(question)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, json.NewDecoder(response.Body).Decode(said)
}

// input is all that is read of a request.
type input struct {
	Login   string `json:"login"`
	IDToken string `json:"id_token"`
}

func begin(session *sessions.Session, _ input) (any, error) {
	said, err := ask("/nonces", map[string]any{})
	if err != nil {
		return nil, err
	}
	login := hex.EncodeToString(random(16))
	session.Values["login"], session.Values["nonce"] = login, said.IssuedNonce
	return map[string]string{"login": login, "nonce": said.IssuedNonce}, nil
}

func logIn(session *sessions.Session, sent input) (any, error) {
	if login, ok := session.Values["login"].(string); !ok || sent.Login != login {
		return nil, failure{http.StatusUnauthorized, "login_not_begun"}
	}
	said, err := ask("/verify", map[string]any{"id_token": sent.IDToken, "issued_nonce": true})
	if err != nil {
		return nil, err
	}
	// The nonce is this session's own. Another login's token has a good nonce too, but another one.
	if said.AuthenticationToken.Nonce != session.Values["nonce"] {
		return nil, failure{http.StatusUnauthorized, "another_login"}
	}
	// Nothing of the session before stays: this is a new one.
	session.Values = map[any]any{"user": said.Profile.UserID}
	return map[string]string{"user": said.Profile.UserID, "name": said.Profile.Name}, nil
}

func user(session *sessions.Session) (string, error) {
	if user, ok := session.Values["user"].(string); ok {
		return user, nil
	}
	return "", failure{http.StatusUnauthorized, "not_logged_in"}
}

func refresh(session *sessions.Session, sent input) (any, error) {
	user, err := user(session)
	if err != nil {
		return nil, err
	}
	// The person is the session's, whatever the client says.
	_, err = ask("/verify", map[string]any{"id_token": sent.IDToken, "subject": user})
	return map[string]string{"user": user}, err
}

func me(session *sessions.Session, _ input) (any, error) {
	user, err := user(session)
	return map[string]string{"user": user}, err
}

var routes = map[string]func(*sessions.Session, input) (any, error){
	"POST /login/begin": begin, "POST /login": logIn, "POST /refresh": refresh, "GET /me": me,
}

// serve gives a route the session and the input, and saves the session where it succeeds.
func serve(w http.ResponseWriter, r *http.Request) {
	var sent input
	var said any
	var err error = failure{http.StatusNotFound, "not_found"}
	// What is no JSON object is as good as an empty one.
	_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimitBytes)).Decode(&sent)
	// A cookie that is not this server's, or too old, gives an empty session.
	session, _ := store.Get(r, "__Host-session")
	if run, ok := routes[r.Method+" "+r.URL.Path]; ok {
		if said, err = run(session, sent); err == nil {
			err = session.Save(r, w)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		refusal := failure{http.StatusInternalServerError, "internal"}
		errors.As(err, &refusal)
		w.WriteHeader(refusal.status)
		said = map[string]string{"error": refusal.code}
	}
	_ = json.NewEncoder(w).Encode(said)
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func random(count int) []byte {
	made := make([]byte, count)
	if _, err := rand.Read(made); err != nil {
		log.Fatal(err)
	}
	return made
}

var store = makeStore()

func makeStore() *sessions.CookieStore {
	// Without a secret of your own every session ends with the process.
	keys := sha512.Sum512([]byte(setting("SESSION_SECRET", hex.EncodeToString(random(32)))))
	store := sessions.NewCookieStore(keys[:32], keys[32:])
	store.Options = &sessions.Options{Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	store.MaxAge(sessionSeconds)
	return store
}

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+setting("PORT", "3000"), http.HandlerFunc(serve)))
}
