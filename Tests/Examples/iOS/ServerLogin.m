// The app's side of a login that a server verifies, in Objective-C. `begin` asks the server's POST /login/begin, and `finish`
// sends the login's id and the id token to its POST /login. The server's session holds the nonce, which does not go back.
#if __has_include(<FBSDKLoginKit/FBSDKLoginKit.h>)
#import <FBSDKLoginKit/FBSDKLoginKit.h>
#else
#import "FacebookSDK.h"
#endif

typedef void (^Begun)(NSString *login, NSString *nonce);
typedef void (^Finished)(NSString *login, NSString *idToken);
typedef void (^Failed)(NSError *error);

void logIn(UIViewController *view, void (^begin)(Begun), Finished finish, Failed fail) {
  begin(^(NSString *login, NSString *nonce) {
    // Tracking is limited with any answer to App Tracking Transparency.
    FBSDKLoginConfiguration *configuration =
        [[FBSDKLoginConfiguration alloc] initWithPermissions:@[ @"public_profile", @"email" ]
                                                    tracking:FBSDKLoginTrackingLimited
                                                       nonce:nonce];
    // Nil if the nonce is empty or holds white space, or if a permission is invalid.
    if (configuration == nil) {
      fail(nil);
      return;
    }
    FBSDKLoginManager *manager = [FBSDKLoginManager new];
    [manager logInFromViewController:view
                       configuration:configuration
                          completion:^(FBSDKLoginManagerLoginResult *result, NSError *error) {
                            // Send the id token, not currentAccessToken: in Limited Login that is nil or useless.
                            NSString *token = FBSDKAuthenticationToken.currentAuthenticationToken.tokenString;
                            if (error != nil || result.isCancelled || token == nil) {
                              fail(error);
                            } else {
                              finish(login, token);
                            }
                          }];
  });
}
