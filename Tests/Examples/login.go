// A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
//
//	VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... SESSION_SECRET=... PORT=3000 go run login.go
//
// Sessions are those of github.com/gorilla/sessions: the signed cookie holds the session, and each change sets a new cookie.
// A client may send an old cookie again, so limited-login takes each nonce only once.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gorilla/sessions"
)

var client = &http.Client{Timeout: 10 * time.Second}
var store = sessions.NewCookieStore([]byte(os.Getenv("SESSION_SECRET")))

// failure is an answer for the client. Any other error is an outage.
type failure struct {
	Status     int
	Code, Hint string
}

func (f failure) Error() string { return f.Code + " " + f.Hint }

// ask asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503.
func ask(path string, members map[string]any, answer any) error {
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, os.Getenv("VERIFY_URL")+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", os.Getenv("VERIFY_KEY"))
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(answer)
	}
	var problem failure
	if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
		return err
	}
	// `unauthorized_client` is about this server's own key, not about the token.
	if (problem.Status == 400 || problem.Status == 401) && problem.Code != "unauthorized_client" {
		return problem
	}
	return errors.New(problem.Error())
}

// input holds the members that are read from a request.
type input struct {
	Login   string `json:"login"`
	IDToken string `json:"id_token"`
}

func begin(session *sessions.Session, _ input) (any, error) {
	var issued struct{ Nonce string }
	if err := ask("/nonces", map[string]any{}, &issued); err != nil {
		return nil, err
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	session.Values["login"], session.Values["nonce"] = hex.EncodeToString(id), issued.Nonce
	return map[string]any{"login": session.Values["login"], "nonce": issued.Nonce}, nil
}

func logIn(session *sessions.Session, sent input) (any, error) {
	if login, begun := session.Values["login"]; !begun || sent.Login != login {
		return nil, failure{Status: 401, Code: "login_not_begun"}
	}
	var verified struct {
		AuthenticationToken struct{ Nonce string } `json:"authentication_token"`
		Profile             struct {
			UserID string `json:"user_id"`
			Name   string
		}
	}
	if err := ask("/verify", map[string]any{"id_token": sent.IDToken, "issued_nonce": true}, &verified); err != nil {
		return nil, err
	}
	// The token must have this session's nonce: another login's token has a good nonce too.
	if verified.AuthenticationToken.Nonce != session.Values["nonce"] {
		return nil, failure{Status: 401, Code: "another_login"}
	}
	// This is a new session: nothing of the old one stays.
	session.Values = map[any]any{"user": verified.Profile.UserID}
	return map[string]any{"user": verified.Profile.UserID, "name": verified.Profile.Name}, nil
}

func refresh(session *sessions.Session, sent input) (any, error) {
	person, err := me(session, sent)
	if err != nil {
		return nil, err
	}
	// The user comes from the session, never from the client.
	return person, ask("/verify", map[string]any{"id_token": sent.IDToken, "subject": session.Values["user"]}, &struct{}{})
}

func me(session *sessions.Session, _ input) (any, error) {
	if user, loggedIn := session.Values["user"]; loggedIn {
		return map[string]any{"user": user}, nil
	}
	return nil, failure{Status: 401, Code: "not_logged_in"}
}

var routes = map[string]func(*sessions.Session, input) (any, error){
	"POST /login/begin": begin, "POST /login": logIn, "POST /refresh": refresh, "GET /me": me,
}

// serve gives a route the session and the input, and saves the session if the route succeeds.
func serve(w http.ResponseWriter, r *http.Request) {
	route, found := routes[r.Method+" "+r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	var sent input
	// Any body but a JSON object counts as an empty object.
	_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 40_960)).Decode(&sent)
	// A foreign or expired cookie gives an empty session.
	session, _ := store.Get(r, "__Host-session")
	answer, err := route(session, sent)
	if err == nil {
		err = session.Save(r, w)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		refusal := failure{Status: 503, Code: "try_again"}
		if !errors.As(err, &refusal) {
			log.Println("limited-login cannot tell:", err)
		}
		w.WriteHeader(refusal.Status)
		answer = map[string]any{"error": refusal.Code}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func main() {
	store.Options = &sessions.Options{Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	store.MaxAge(3_600)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(serve)))
}
