// format=html of an export: the page with the answers of one view in it. What the page asks a server for is asked here in
// the same way, so the file shows what the server would.
#pragma once

#include <string_view>

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// Of the embedded page; empty where a program was built without it.
struct PageBytes {
    std::string_view script, style;
};

// The view is that of `request`, whose parameter "page" is the state that the file begins with.
Answer html_answer(const Session& session, const Request& request, const PageBytes& bytes);

}  // namespace flamewire::server
