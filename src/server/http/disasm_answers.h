// The machine code of one function with the weight of every instruction.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::server {

// Selects by function=NAME [module=MODULE], file=FILE line=LINE, or module=MODULE address=ADDRESS. at=ADDRESS selects
// one of several copies, from=ADDRESS a part of a long function.
Answer disasm_answer(const Session& session, const Request& request, symbol::Symbolizer& symbolizer);

}  // namespace flamewire::server
