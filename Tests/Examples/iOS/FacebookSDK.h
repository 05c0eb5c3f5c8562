// The part of Facebook's SDK and of Foundation that the Objective-C sketch uses, declared so that it can be checked without
// both. Names and shapes are those of FBSDKLoginKit 18. An app leaves this file out.
#pragma clang assume_nonnull begin

#define nil ((id)0)

__attribute__((objc_root_class)) @interface NSObject
+ (instancetype)alloc;
+ (instancetype)new;
@end

@interface NSString : NSObject
@end
@interface NSConstantString : NSString
@end
@interface NSError : NSObject
@end
@interface UIViewController : NSObject
@end

@interface NSArray<ObjectType> : NSObject
+ (instancetype)arrayWithObjects:(const id _Nonnull[_Nullable])objects count:(unsigned long)count;
@end

typedef enum { FBSDKLoginTrackingEnabled, FBSDKLoginTrackingLimited } FBSDKLoginTracking;

@interface FBSDKLoginConfiguration : NSObject
- (nullable instancetype)initWithPermissions:(NSArray<NSString *> *)permissions
                                    tracking:(FBSDKLoginTracking)tracking
                                       nonce:(NSString *)nonce;
@end

@interface FBSDKAuthenticationToken : NSObject
@property(class, nullable, readonly) FBSDKAuthenticationToken *currentAuthenticationToken;
@property(readonly) NSString *tokenString;
@end

@interface FBSDKLoginManagerLoginResult : NSObject
@property(readonly) _Bool isCancelled;
@end

@interface FBSDKLoginManager : NSObject
- (void)logInFromViewController:(nullable UIViewController *)view
                  configuration:(nullable FBSDKLoginConfiguration *)configuration
                     completion:(void (^)(FBSDKLoginManagerLoginResult *_Nullable, NSError *_Nullable))completion;
@end

#pragma clang assume_nonnull end
