// CUPTI's activity records of a device, in the order of calls in which CUPTI gives all of them.
#pragma once
namespace decodelab { class CuptiSession { public: ~CuptiSession() = default; }; }
