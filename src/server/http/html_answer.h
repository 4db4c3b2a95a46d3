// format=html of an export: the page together with the answers of one view. It makes the same requests that the page
// sends to a server, so the file shows what the server would show.
#pragma once

#include <string_view>

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// Of the embedded page. Empty if the program was built without it.
struct PageBytes {
    std::string_view script, style;
};

// The view is that of `request`. Its parameter "page" is the initial state of the file.
Answer html_answer(const Session& session, const Request& request, const PageBytes& bytes);

}  // namespace flamewire::server
