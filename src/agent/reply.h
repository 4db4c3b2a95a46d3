// A reply to a command that succeeded.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "wire/control.h"

namespace flamewire::agent {

class Reply : public JsonWriter {
public:
    explicit Reply(const wire::Command& command) { object().member("id", command.id).member("ok", true); }
    std::string finish() {
        end_object();
        return take();
    }
};

}  // namespace flamewire::agent
