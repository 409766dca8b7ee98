import { expect, test } from "vitest";
import { ApiError } from "../../api/errors.ts";
import { changeWords, refusalOf } from "./model.ts";

test("a changed password shows how many logins ended and how many tokens stay valid", () => {
  expect(changeWords({ endedTokens: 2, remainingTokens: 3 }, false)).toBe(
    "2 other logins of yours ended. 3 tokens of yours go on, for the API or in a kubeconfig.",
  );
  expect(changeWords({ endedTokens: 0, remainingTokens: 1 }, false)).toBe(
    "No other login of yours had to end. 1 token of yours goes on, for the API or in a kubeconfig.",
  );
  expect(changeWords({ endedTokens: 1, remainingTokens: 0 }, true)).toBe(
    "1 other login or token of yours ended. No token of yours goes on.",
  );
});

test("a refusal is shown at its field", () => {
  const weak = new ApiError(422, "InvalidFormat", "new password must be longer", "newPassword");
  expect(refusalOf(weak)).toEqual({ field: "new", text: "New password must be longer." });
  const wrong = new ApiError(422, "InvalidBodyContent", "invalid current password");
  expect(refusalOf(wrong).field).toBe("current");
  const slowed = new ApiError(429, "TooManyRequests", "too many wrong passwords; try again in 9 s");
  expect(refusalOf(slowed)).toEqual({
    field: undefined,
    text: "Too many wrong passwords; try again in 9 s.",
  });
});
