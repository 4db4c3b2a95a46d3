// What the server prints when it starts: its addresses, and the command for a target.
#pragma once

#include <cstdint>
#include <string>

#include "server/http/status_answer.h"
#include "server/link/key_ring.h"
#include "server/options.h"

namespace flamewire::server {

// More people can read a journal than the terminal that started the server.
bool into_journal();
// The file that has the page's token, if no other one is given.
std::string kept_token_path(const Options& options);
std::string http_url(const Options& options, std::uint16_t port);
std::string target_command(const Options& options, std::uint16_t port);
void print_start(const Options& options, const ServerFacts& facts, const std::string& http_token, KeyRing& keys);

}  // namespace flamewire::server
